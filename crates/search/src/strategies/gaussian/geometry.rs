//! Distances between points: per parameter, in normalized units.

use tensorwright_space::{Parameter, Point, SearchSpace};

/// The maximum number of values of a parameter to examine for its scale.
const MOST_LOOKED_AT: u32 = 256;

/// Scales for the features of every parameter.
#[derive(Debug)]
pub(super) struct Geometry {
    /// One factor per feature.
    scales: Vec<f32>,
    /// The end of each parameter's features.
    ends: Vec<usize>,
}

/// The scaled features of a point.
pub(super) type Coordinates = Box<[f32]>;

impl Geometry {
    /// The scales of a space: the features of a parameter have a total variance of 1.
    pub(super) fn new(space: &SearchSpace) -> Self {
        let mut geometry = Self { scales: Vec::new(), ends: Vec::new() };
        for parameter in space.parameters() {
            geometry.scales.extend(scales(parameter));
            geometry.ends.push(geometry.scales.len());
        }
        geometry
    }

    /// The number of parameters.
    pub(super) fn parameters(&self) -> usize {
        self.ends.len()
    }

    /// The coordinates of a point.
    pub(super) fn place(&self, space: &SearchSpace, point: &Point) -> Coordinates {
        let mut features = Vec::with_capacity(self.scales.len());
        for (parameter, rank) in space.parameters().iter().zip(point.ranks()) {
            parameter.features(*rank, &mut features);
        }
        features.iter_mut().zip(&self.scales).for_each(|(feature, scale)| *feature *= scale);
        features.into_boxed_slice()
    }

    /// Multiplies every parameter's features by a factor.
    pub(super) fn stretch(&self, place: &Coordinates, factors: &[f64]) -> Coordinates {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let mut stretched = place.clone();
        for ((start, end), factor) in starts.zip(&self.ends).zip(factors) {
            stretched[start..*end].iter_mut().for_each(|feature| *feature *= *factor as f32);
        }
        stretched
    }

    /// The squared distance of two points per parameter.
    pub(super) fn distances<'a>(
        &'a self,
        a: &'a Coordinates,
        b: &'a Coordinates,
    ) -> impl Iterator<Item = f64> + 'a {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| {
            let pairs = a[start..*end].iter().zip(&b[start..*end]);
            f64::from(pairs.map(|(x, y)| (x - y) * (x - y)).sum::<f32>())
        })
    }
}

/// The squared distance of two points; eight parallel sums, which the compiler vectorizes.
pub(super) fn distance(a: &Coordinates, b: &Coordinates) -> f64 {
    let mut sums = [0.0f32; 8];
    let (left, right) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = left.remainder().iter().zip(right.remainder());
    let rest: f32 = rest.map(|(x, y)| (x - y) * (x - y)).sum();
    for (x, y) in left.zip(right) {
        for lane in 0..8 {
            let difference = x[lane] - y[lane];
            sums[lane] += difference * difference;
        }
    }
    f64::from(rest + sums.iter().sum::<f32>())
}

/// One factor per feature of a parameter.
fn scales(parameter: &Parameter) -> Vec<f32> {
    let looked_at = parameter.count().min(MOST_LOOKED_AT);
    let rows: Vec<Vec<f32>> = (0..looked_at)
        .map(|i| {
            let rank = u64::from(i) * u64::from(parameter.count()) / u64::from(looked_at);
            let mut row = Vec::new();
            parameter.features(rank as u32, &mut row);
            row
        })
        .collect();
    let features = rows.first().map_or(0, Vec::len);
    let deviation = |feature: usize| {
        let column = || rows.iter().map(|row| row[feature]);
        let mean = column().sum::<f32>() / rows.len() as f32;
        (column().map(|x| (x - mean) * (x - mean)).sum::<f32>() / rows.len() as f32).sqrt()
    };
    let varying = (0..features).filter(|feature| deviation(*feature) > 0.0).count() as f32;
    let scale =
        |deviation: f32| if deviation > 0.0 { 1.0 / deviation / varying.sqrt() } else { 0.0 };
    (0..features).map(|feature| scale(deviation(feature))).collect()
}
