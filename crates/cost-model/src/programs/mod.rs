//! [`RandomPipeline`]: random programs made of common building blocks.

mod blocks;

use tensorwright_random::Rng;

use blocks::{BLOCKS, Picture};

/// A random pipeline: the text of a program with fixed sizes. Images have one or three channels.
/// Stages are pointwise functions, stencils along rows, columns and both, window sums and maxima,
/// downsampling and upsampling by two, and sums over channels.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_cost_model::RandomPipeline;
///
/// let random = RandomPipeline::new(7);
/// let program = Module::parse("random.tc", &random.text)?.bind("random", [("A", 1); 0])?;
/// assert!(program.stages.len() >= 3);
/// assert_eq!(RandomPipeline::new(7).text, random.text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RandomPipeline {
    /// The text; the definition has the name `random`.
    pub text: String,
}

/// The heights and widths of images.
const EXTENTS: [&[i64]; 2] = [&[256, 480, 768, 1080, 1536], &[320, 640, 1024, 1920]];

/// The state of the generator.
struct Builder {
    rng: Rng,
    /// Stages as text.
    lines: Vec<String>,
    /// The readable images: the input and the stages.
    pictures: Vec<Picture>,
}

impl RandomPipeline {
    /// The pipeline for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let channels = *rng.pick(&[1, 1, 3]);
        let extents = [*rng.pick(EXTENTS[0]), *rng.pick(EXTENTS[1])];
        let input = Picture { name: "in".to_owned(), channels, extents, halvings: 0 };
        let shape = match channels {
            1 => format!("{},{}", extents[0], extents[1]),
            _ => format!("{channels},{},{}", extents[0], extents[1]),
        };
        let mut builder = Builder { rng, lines: Vec::new(), pictures: vec![input] };
        let stages = builder.rng.range(2, 10) as usize;
        while builder.lines.len() < stages {
            let weights: Vec<f64> = BLOCKS.iter().map(|(_, weight, _)| *weight).collect();
            let (_, _, add) = BLOCKS[builder.rng.weighted(&weights)];
            add(&mut builder);
        }
        let out = builder.finish();
        let body = builder.lines.join("\n  ");
        Self { text: format!("def random(float({shape}) in) -> ({out}) {{\n  {body}\n}}\n") }
    }
}

impl Builder {
    /// Chooses an image to read, with a preference for unread and recent ones.
    fn choose(&mut self) -> Picture {
        let count = self.pictures.len();
        let weight = |(number, picture): (usize, &Picture)| {
            let fresh = if self.is_read(picture) { 1.0 } else { 6.0 };
            fresh * (1.0 + number as f64 / count as f64)
        };
        let weights: Vec<f64> = self.pictures.iter().enumerate().map(weight).collect();
        self.pictures[self.rng.weighted(&weights)].clone()
    }

    /// Another image of the same shape, or the same one.
    fn alike(&mut self, with: &Picture) -> Picture {
        let is_alike = |number: &usize| {
            let picture = &self.pictures[*number];
            picture.channels == with.channels && picture.extents == with.extents
        };
        let places: Vec<usize> = (0..self.pictures.len()).filter(is_alike).collect();
        self.pictures[*self.rng.pick(&places)].clone()
    }

    /// Whether a stage reads an image.
    fn is_read(&self, picture: &Picture) -> bool {
        let name = format!("{}(", picture.name);
        // A line starts with the stage that it defines. No function name ends like a stage name.
        let reads = |line: &String| {
            line.split_once('=').is_some_and(|(_, expression)| expression.contains(&name))
        };
        self.lines.iter().any(reads)
    }

    /// The name of the next stage.
    fn next_name(&self) -> String {
        format!("s{}", self.lines.len())
    }

    /// Adds a stage with the shape of an image, from the expression of its pixel at `at`.
    fn stage(&mut self, like: &Picture, operator: &str, expression: &str, bounds: &[(&str, i64)]) {
        let name = self.next_name();
        let mut bounds: Vec<String> =
            bounds.iter().map(|(index, extent)| format!("{index} in 0:{extent}")).collect();
        bounds.insert(0, format!("y in 0:{}, x in 0:{}", like.extents[0], like.extents[1]));
        let at = match like.channels {
            1 => "y,x".to_owned(),
            channels => {
                bounds.insert(0, format!("c in 0:{channels}"));
                "c,y,x".to_owned()
            }
        };
        let bounds = bounds.join(", ");
        self.lines.push(format!("{name}({at}) {operator} {expression} where {bounds}"));
        self.pictures.push(Picture { name, ..like.clone() });
    }

    /// Combines all unread images; returns the name of the result.
    fn finish(&mut self) -> String {
        loop {
            let stages = self.pictures.iter().skip(1);
            let open: Vec<Picture> =
                stages.filter(|picture| !self.is_read(picture)).cloned().collect();
            let [a, .., b] = open.as_slice() else {
                return self
                    .pictures
                    .last()
                    .map(|picture| picture.name.clone())
                    .unwrap_or_default();
            };
            let like = if a.halvings <= b.halvings { a.clone() } else { b.clone() };
            let expression = format!("{} + 0.5 * {}", a.seen_from(&like), b.seen_from(&like));
            self.stage(&like, "=", &expression, &[]);
        }
    }
}

#[cfg(test)]
mod tests;
