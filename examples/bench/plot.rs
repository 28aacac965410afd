//! The pictures of docs/BENCHMARKS.md.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::VPos;

use crate::drawing::{Drawn, GRID, INK, canvas, centred, colours, font, legend};
use crate::growth::{COST_COUNTER, COST_LOG, COST_LUA};
use crate::hot::{ADMITTED, DEEP, LIMITED, RELEASED};
use crate::memory;
use crate::results::Results;
use crate::rows::{
    COUNTER, COUNTER_LIMITED, FIXED_WINDOW, INCR, INCREX, LOG_LIMITED, LUA_COUNTER, THROTTLE,
};
use crate::steady::{self, SIZE};
use crate::traffic;

/// What stands above the plot: the title and the legend.
const HEADER: u32 = 72;

/// The part of a group that its bars fill.
const GROUP: f64 = 0.88;

/// A group of the first picture: its name in two lines, and its figure.
type Group = ([&'static str; 2], fn() -> String);

static GROUPS: [Group; 10] = [
    (["INCR", ""], || INCR.name.to_owned()),
    (["INCR and", "PEXPIRE NX"], || FIXED_WINDOW.name.to_owned()),
    (["INCREX", ""], || INCREX.name.to_owned()),
    (["CL.THROTTLE", ""], || THROTTLE.name.to_owned()),
    (["COUNTER", "limited"], || COUNTER_LIMITED.name.to_owned()),
    (["COUNTER", "admitted"], || COUNTER.name.to_owned()),
    (["LOG", "limited"], || LOG_LIMITED.name.to_owned()),
    (["LOG", "admitted"], || steady::LOG.at(SIZE)),
    (["counter", "in Lua"], || LUA_COUNTER.name.to_owned()),
    (["log", "in Lua"], || steady::LUA_LOG.at(SIZE)),
];

const SERVERS: [RGBColor; 5] = [
    colours::VERMILION,
    colours::ORANGE,
    RGBColor(0xcc, 0x79, 0xa7), // purple, of the same palette
    colours::BLUE,
    colours::SKY,
];

/// Time a call of each command on each server, as bars.
fn commands(file: &Path, all: &[Results]) -> Drawn {
    let canvas = canvas(file, "CPU time of the whole server a call, pipelined")?;
    let value =
        |results: &Results, figure: fn() -> String| results.number(&figure()).unwrap_or(0.0);
    let values = all
        .iter()
        .flat_map(|results| GROUPS.map(|(_, figure)| value(results, figure)));
    let top = values.fold(0.0, f64::max) * 1.08;
    let groups = GROUPS.len() as f64;
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
    for (group, (words, figure)) in GROUPS.into_iter().enumerate() {
        let middle = group as f64 + 0.5;
        for (index, (results, colour)) in all.iter().zip(SERVERS.into_iter().cycle()).enumerate() {
            let left = middle - GROUP / 2.0 + place * index as f64;
            let value = value(results, figure);
            if value == 0.0 {
                continue;
            }
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
    y: &'a str,
    curves: Vec<Curve<'a>>,
}

struct Curve<'a> {
    name: &'a str,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// Time a call against its cost.
fn costs(file: &Path, results: &Results) -> Drawn {
    let curves = [
        (&COST_LUA, colours::GREY),
        (&COST_LOG, colours::GREEN),
        (&COST_COUNTER, colours::BLUE),
    ];
    let curves = curves.map(|(curve, colour)| Curve {
        name: curve.title,
        colour,
        points: results.series(&curve.name()),
    });
    let picture = Growth {
        title: "Time a call against its cost",
        x: "cost of the call, units",
        y: "µs",
        curves: curves.into(),
    };
    picture.draw(file)
}

/// Time a call against the entries of its log.
fn entries(file: &Path, results: &Results) -> Drawn {
    let curves = [
        (
            &DEEP,
            "limited until half of the log expires",
            colours::VERMILION,
        ),
        (&LIMITED, "limited", colours::ORANGE),
        (&RELEASED, "admitted by 0.1.0", colours::GREY),
        (&ADMITTED, "admitted", colours::GREEN),
    ];
    let curves = curves.map(|(kind, name, colour)| Curve {
        name,
        colour,
        points: results.series(&format!("µs {}", kind.name)),
    });
    let picture = Growth {
        title: "Time inside the server of a SLIDE.LOG call against the entries of its log",
        x: "live entries",
        y: "µs",
        curves: curves.into(),
    };
    picture.draw(file)
}

/// Memory of a key against the calls that its window holds.
fn memory(file: &Path, results: &Results) -> Drawn {
    let logs = [
        (&traffic::LUA, "log in Lua, a member a unit", colours::GREY),
        (&traffic::RELEASED, "SLIDE.LOG of 0.1.0", colours::ORANGE),
        (&traffic::LOG, "SLIDE.LOG", colours::GREEN),
    ];
    let mut curves: Vec<Curve> = logs
        .into_iter()
        .map(|(kept, name, colour)| {
            let a_call = results.series(&kept.memory());
            let in_all = a_call
                .into_iter()
                .map(|(calls, bytes)| (calls, calls * bytes));
            let points = in_all.collect();
            Curve {
                name,
                colour,
                points,
            }
        })
        .collect();
    if let Some(bytes) = results.number(&memory::of(&COUNTER)) {
        let places = curves.iter().flat_map(|curve| &curve.points);
        let points = places.map(|(calls, _)| (*calls, bytes)).collect();
        curves.push(Curve {
            name: "SLIDE.COUNTER",
            colour: colours::BLUE,
            points,
        });
    }
    let picture = Growth {
        title: "Memory of a key against the calls of cost 1 that its window holds",
        x: "calls in the window",
        y: "bytes",
        curves,
    };
    picture.draw(file)
}

/// Draws all of them: the first from all servers, the others from the first that has their figures.
pub fn draw(docs: &Path, all: &[Results], shown: &Results) -> Drawn {
    commands(&docs.join("bench-commands.svg"), all)?;
    memory(&docs.join("bench-memory.svg"), shown)?;
    entries(&docs.join("bench-entries.svg"), shown)?;
    costs(&docs.join("bench-cost.svg"), shown)
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
    fn draw(self, file: &Path) -> Drawn {
        let canvas = canvas(file, self.title)?;
        let mut curves = self.curves;
        for (x, y) in curves.iter_mut().flat_map(|curve| &mut curve.points) {
            (*x, *y) = (x.log10(), y.max(0.1).log10());
        }
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let left = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let right = points().map(|point| point.0).fold(0.0, f64::max);
        let bottom = points().map(|point| point.1);
        let bottom = bottom.fold(f64::INFINITY, f64::min).floor();
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
            .y_desc(self.y)
            .axis_desc_style(font(15))
            .label_style(font(14))
            .axis_style(INK)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (
            index,
            Curve {
                name,
                colour,
                points,
            },
        ) in (0..).zip(curves)
        {
            let line = PathElement::new(points.clone(), colour.stroke_width(3));
            chart.plotting_area().draw(&line)?;
            let dot = |&point| Circle::new(point, 4, colour.filled());
            chart.draw_series(points.iter().map(dot))?;
            legend(&canvas, (90 + 225 * index, 44), name, colour)?;
        }
        canvas.present()?;
        Ok(())
    }
}
