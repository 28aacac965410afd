//! What was measured on one server: names and values, kept in a file between the runs of the tool.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::fs;
use std::io;
use std::path::Path;

#[derive(Debug, Default)]
pub struct Results(BTreeMap<String, String>);

impl Results {
    pub fn set(&mut self, name: impl Into<String>, value: impl Display) {
        let name = name.into();
        assert!(
            !self.0.contains_key(&name),
            "two figures with one name: {name}"
        );
        self.0.insert(name, value.to_string());
    }

    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A value that may be missing, because the server lacks what it is about.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.parse().ok()
    }

    /// What one thing costs as a multiple of another.
    pub fn ratio(&self, of: &str, to: &str) -> Option<f64> {
        Some(self.number(of)? / self.number(to)?)
    }

    /// The values whose names begin so and end in a number, by that number.
    pub fn series(&self, prefix: &str) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = self
            .0
            .iter()
            .filter_map(|(name, value)| {
                let place = name.strip_prefix(prefix)?.strip_prefix(' ')?;
                Some((place.parse().ok()?, value.parse().ok()?))
            })
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    }

    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, file: &Path) -> io::Result<()> {
        let mut text = String::new();
        for (name, value) in &self.0 {
            let _ = writeln!(text, "{name}\t{value}");
        }
        fs::write(file, text)
    }

    /// # Errors
    /// When the file cannot be read.
    pub fn load(file: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(file)?;
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        let owned = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self(owned.collect()))
    }
}
