//! [`HiddenTrees`]: the trees of a nest outside the current [window](crate::Window).

use std::collections::HashMap;

use super::{BufferId, LoopNest, Node, Size, Uses};

/// The trees of a nest outside the current window: the buffers that they mention, and their size.
///
/// Empty unless a [`Window`](crate::Window) shows only a part.
#[derive(Debug, Clone, Default)]
pub(crate) struct HiddenTrees {
    trees: usize,
    /// The number of trees that mention a buffer.
    mentions: HashMap<BufferId, u32>,
    /// The sums of their sizes; the limits on maxima were checked when each tree was created.
    size: Size,
}

impl HiddenTrees {
    /// Whether the whole nest is in the window.
    pub(crate) fn is_empty(&self) -> bool {
        self.trees == 0
    }

    /// Whether a hidden tree mentions a buffer.
    pub(crate) fn has(&self, buffer: BufferId) -> bool {
        self.mentions.contains_key(&buffer)
    }

    /// The sums of the sizes of the trees.
    pub(crate) fn size(&self) -> &Size {
        &self.size
    }

    /// Adds a tree that leaves the window.
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

    /// Removes a tree that enters the window.
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
