//! The pictures of docs/BENCHMARKS.md.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::VPos;

use crate::drawing::{Drawn, GRID, INK, canvas, centred, colours, font, legend};
use crate::results::Results;

/// What stands above the plot: the title and the legend.
const HEADER: u32 = 72;

/// The part of a group that its bars fill.
const GROUP: f64 = 0.88;

/// The commands of the first picture, and their names there in two lines.
const COMMANDS: [(&str, [&str; 2]); 9] = [
    ("INCR", ["INCR", ""]),
    ("HINCRBY", ["HINCRBY", ""]),
    ("ZADD", ["ZADD", ""]),
    ("COUNTER limited", ["COUNTER", "limited"]),
    ("COUNTER", ["COUNTER", "admitted"]),
    ("LOG limited", ["LOG", "limited"]),
    ("LOG", ["LOG", "admitted"]),
    ("Lua counter", ["counter", "in Lua"]),
    ("Lua log", ["log", "in Lua"]),
];

const SERVERS: [RGBColor; 5] = [
    colours::VERMILION,
    colours::ORANGE,
    RGBColor(0xcc, 0x79, 0xa7), // purple, of the same palette
    colours::BLUE,
    colours::SKY,
];

/// Time a call of each command on each server, as bars.
pub fn commands(file: &Path, all: &[Results]) -> Drawn {
    let canvas = canvas(file, "CPU time of the whole server a call, pipelined")?;
    let value = |results: &Results, name: &str| results.number(name).unwrap_or(0.0);
    let values = all
        .iter()
        .flat_map(|results| COMMANDS.map(|(name, _)| value(results, name)));
    let top = values.fold(0.0, f64::max) * 1.08;
    let groups = COMMANDS.len() as f64;
    let mut chart = ChartBuilder::on(&canvas)
        .margin(16)
        .margin_top(HEADER)
        .x_label_area_size(48)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..groups, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(8)
        .y_label_formatter(&|value| format!("{value:.0}"))
        .y_desc("µs")
        .axis_desc_style(font(15))
        .label_style(font(14))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()?;
    let area = chart.plotting_area();
    let place = GROUP / all.len() as f64;
    for (group, (name, words)) in COMMANDS.into_iter().enumerate() {
        let middle = group as f64 + 0.5;
        for (index, (results, colour)) in all.iter().zip(SERVERS.into_iter().cycle()).enumerate() {
            let left = middle - GROUP / 2.0 + place * index as f64;
            let value = value(results, name);
            let corners = [(left, 0.0), (left + 0.9 * place, value)];
            area.draw(&Rectangle::new(corners, colour.filled()))?;
            let above = (left + 0.45 * place, value + top * 0.008);
            let label = match value {
                ..10.0 => format!("{value:.1}"),
                _ => format!("{value:.0}"),
            };
            area.draw(&Text::new(label, above, centred(10, VPos::Bottom)))?;
        }
        let (x, y) = chart.backend_coord(&(middle, 0.0));
        for (word, below) in words.into_iter().zip([8, 24]) {
            canvas.draw(&Text::new(word, (x, y + below), centred(14, VPos::Top)))?;
        }
    }
    for (index, (results, colour)) in (0..).zip(all.iter().zip(SERVERS.into_iter().cycle())) {
        legend(
            &canvas,
            (80 + 180 * index, 44),
            results.text("name"),
            colour,
        )?;
    }
    canvas.present()?;
    Ok(())
}

/// A picture with curves, both of its axes logarithmic.
struct Growth<'a> {
    title: &'a str,
    x: &'a str,
    /// Each curve's name, and what its values begin with.
    curves: &'a [(&'a str, &'a str, RGBColor)],
}

/// Time a call against its cost.
pub fn costs(file: &Path, results: &Results) -> Drawn {
    let picture = Growth {
        title: "Time a call against its cost",
        x: "cost of the call, units",
        curves: &[
            ("log in Lua, a member a unit", "cost Lua log", colours::GREY),
            ("SLIDE.LOG", "cost LOG", colours::GREEN),
            ("SLIDE.COUNTER", "cost COUNTER", colours::BLUE),
        ],
    };
    picture.draw(file, results)
}

/// Time a call against the entries of its log.
pub fn entries(file: &Path, results: &Results) -> Drawn {
    let picture = Growth {
        title: "Time inside the server of a SLIDE.LOG call against the entries of its log",
        x: "live entries",
        curves: &[
            (
                "limited until half of the log expires",
                "µs limited, deep",
                colours::VERMILION,
            ),
            ("limited", "µs limited", colours::ORANGE),
            ("admitted", "µs admitted", colours::GREEN),
        ],
    };
    picture.draw(file, results)
}

/// A power of ten, as people write it.
fn power(exponent: f64) -> String {
    match exponent.round() {
        exponent @ ..0.0 => format!("{:.*}", -exponent as usize, 10_f64.powf(exponent)),
        exponent @ ..3.0 => format!("{:.0}", 10_f64.powf(exponent)),
        exponent @ ..6.0 => format!("{:.0},000", 10_f64.powf(exponent - 3.0)),
        exponent => format!("{:.0},000,000", 10_f64.powf(exponent - 6.0)),
    }
}

impl Growth<'_> {
    fn draw(&self, file: &Path, results: &Results) -> Drawn {
        let canvas = canvas(file, self.title)?;
        let log10 = |(x, y): (f64, f64)| (x.log10(), y.max(0.1).log10());
        let curves = self.curves.iter().map(|&(name, series, colour)| {
            let points: Vec<_> = results.series(series).into_iter().map(log10).collect();
            (name, colour, points)
        });
        let curves: Vec<_> = curves.collect();
        let points = || curves.iter().flat_map(|(_, _, points)| points);
        let left = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let right = points().map(|point| point.0).fold(0.0, f64::max);
        let bottom = points().map(|point| point.1).fold(0.0, f64::min).floor();
        // At least to 100 µs, where a slope of little steepness looks like one.
        let top = points().map(|point| point.1).fold(2.0, f64::max).ceil();
        let mut chart = ChartBuilder::on(&canvas)
            .margin(16)
            .margin_right(40)
            .margin_top(HEADER)
            .x_label_area_size(52)
            .y_label_area_size(84)
            .build_cartesian_2d(left..right, bottom..top)?;
        chart
            .configure_mesh()
            .x_labels((right - left) as usize + 1)
            .y_labels((top - bottom) as usize + 1)
            .x_label_formatter(&|at| power(*at))
            .y_label_formatter(&|at| power(*at))
            .x_desc(self.x)
            .y_desc("µs")
            .axis_desc_style(font(15))
            .label_style(font(14))
            .axis_style(INK)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (index, (name, colour, points)) in (0..).zip(curves) {
            let line = PathElement::new(points.clone(), colour.stroke_width(3));
            chart.plotting_area().draw(&line)?;
            let dot = |&point| Circle::new(point, 4, colour.filled());
            chart.draw_series(points.iter().map(dot))?;
            legend(&canvas, (100 + 290 * index, 44), name, colour)?;
        }
        canvas.present()?;
        Ok(())
    }
}
