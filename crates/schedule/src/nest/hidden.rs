//! [`HiddenTrees`]: what stands around the piece of a nest that is in view.

use std::collections::HashMap;

use super::{BufferId, LoopNest, Node, Size, Uses};

/// What stands around the piece of a nest that is in view: which buffers are mentioned there, and how large it is.
///
/// It is empty unless a [`Window`](crate::Window) shows a piece alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct HiddenTrees {
    trees: usize,
    /// How many trees mention a buffer.
    mentions: HashMap<BufferId, u32>,
    /// The sums of their sizes; limits on what is largest held when a tree was made.
    size: Size,
}

impl HiddenTrees {
    /// Whether all of the nest is in view.
    pub(crate) fn is_empty(&self) -> bool {
        self.trees == 0
    }

    /// Whether a buffer is mentioned out of view.
    pub(crate) fn has(&self, buffer: BufferId) -> bool {
        self.mentions.contains_key(&buffer)
    }

    /// The sums of the sizes of the trees.
    pub(crate) fn size(&self) -> &Size {
        &self.size
    }

    /// Adds a tree that goes out of view.
    pub(crate) fn add(&mut self, nest: &LoopNest, tree: &Node) {
        self.trees += 1;
        for buffer in Uses::mentioned(std::slice::from_ref(tree)) {
            *self.mentions.entry(buffer).or_default() += 1;
        }
        let size = Size::of_nodes(nest, std::slice::from_ref(tree));
        self.size.iterations = self.size.iterations.saturating_add(size.iterations);
        self.size.operations = self.size.operations.saturating_add(size.operations);
        self.size.parts = self.size.parts.saturating_add(size.parts);
        self.size.stores = self.size.stores.saturating_add(size.stores);
    }

    /// Takes away a tree that comes into view.
    pub(crate) fn remove(&mut self, nest: &LoopNest, tree: &Node) {
        self.trees = self.trees.saturating_sub(1);
        for buffer in Uses::mentioned(std::slice::from_ref(tree)) {
            if let Some(count) = self.mentions.get_mut(&buffer) {
                *count -= 1;
                if *count == 0 {
                    self.mentions.remove(&buffer);
                }
            }
        }
        let size = Size::of_nodes(nest, std::slice::from_ref(tree));
        self.size.iterations = self.size.iterations.saturating_sub(size.iterations);
        self.size.operations = self.size.operations.saturating_sub(size.operations);
        self.size.parts = self.size.parts.saturating_sub(size.parts);
        self.size.stores = self.size.stores.saturating_sub(size.stores);
    }
}
