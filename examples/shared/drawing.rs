//! How all pictures look.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub type Drawn = Result<(), Box<dyn Error>>;
pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub const SIZE: (u32, u32) = (1000, 460);

pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// Colours that the colour-blind can tell apart too (Okabe and Ito).
pub mod colours {
    use plotters::style::RGBColor;

    pub const GREY: RGBColor = RGBColor(0x99, 0x99, 0x99);
    pub const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
    pub const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
    pub const SKY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
    pub const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
    pub const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
}

pub fn font(size: u32) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", size)).color(&INK)
}

pub fn centred(size: u32, vertical: VPos) -> TextStyle<'static> {
    font(size).pos(Pos::new(HPos::Center, vertical))
}

/// A canvas with its title.
///
/// # Errors
/// When it cannot be drawn on.
pub fn canvas<'a>(file: &'a Path, title: &str) -> Result<Canvas<'a>, Box<dyn Error>> {
    let canvas = SVGBackend::new(file, SIZE).into_drawing_area();
    // Without it the ink would vanish on a dark page.
    canvas.fill(&WHITE)?;
    canvas.draw(&Text::new(title, (20, 14), font(19)))?;
    Ok(canvas)
}

/// A line of the legend: a patch of colour and what it stands for.
///
/// # Errors
/// When it cannot be drawn.
pub fn legend(canvas: &Canvas, (x, y): (i32, i32), name: &str, colour: RGBColor) -> Drawn {
    let corners = [(x, y), (x + 14, y + 14)];
    canvas.draw(&Rectangle::new(corners, colour.filled()))?;
    canvas.draw(&Text::new(name, (x + 21, y), font(15)))?;
    Ok(())
}
