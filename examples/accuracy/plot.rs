//! The two pictures: a group of bars for each traffic, a bar for each limiter.

use std::path::Path;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::VPos;

use crate::Row;
use crate::drawing::{Canvas, Drawn, GRID, INK, canvas, centred, colours, font, legend};
use crate::judge::Score;
use crate::limiters::Kind;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// What stands above the bars: the title, and the legend in two lines.
const HEADER: u32 = 88;

/// The part of a group that its bars fill.
const GROUP: f64 = 0.88;

/// What one picture shows.
struct Picture {
    title: &'static str,
    axis: &'static str,
    /// The end of the axis, and how many steps lead there.
    top: f64,
    steps: usize,
    tick: fn(&f64) -> String,
    /// Where to draw a line across.
    line: Option<f64>,
    value: fn(Score) -> f64,
    label: fn(f64) -> String,
}

pub fn worst_window(file: &Path, rows: &[Row]) -> Drawn {
    let picture = Picture {
        title: "Calls admitted in the worst window of one minute (the line is the limit)",
        axis: "multiple of the limit",
        top: 2.5,
        steps: 5,
        tick: |value| format!("{value:.1}"),
        line: Some(1.0),
        value: Score::worst_of_limit,
        label: |value| format!("{value:.2}"),
    };
    picture.draw(file, rows)
}

pub fn wrongly_refused(file: &Path, rows: &[Row]) -> Drawn {
    let picture = Picture {
        title: "Calls refused though an exact log of the same calls would admit them",
        axis: "% of all calls",
        top: 100.0,
        steps: 5,
        tick: |value| format!("{value:.0}"),
        line: None,
        value: Score::percent_refused,
        label: |value| match value {
            0.0 => "0".to_owned(),
            ..10.0 => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        },
    };
    picture.draw(file, rows)
}

fn colour(kind: Kind) -> RGBColor {
    match kind {
        Kind::FixedWindow => colours::GREY,
        Kind::Gcra => colours::ORANGE,
        Kind::Classic => colours::VERMILION,
        Kind::Buckets => colours::SKY,
        Kind::Strict => colours::BLUE,
        Kind::Log => colours::GREEN,
    }
}

#[allow(clippy::cast_precision_loss)] // a handful of bars
fn position(index: usize) -> f64 {
    index as f64
}

impl Picture {
    fn draw(&self, file: &Path, rows: &[Row]) -> Drawn {
        let canvas = canvas(file, self.title)?;
        limiters(&canvas)?;
        self.bars(&canvas, rows)?;
        canvas.present()?;
        Ok(())
    }

    /// The axes, and all that stands between them.
    fn bars(&self, canvas: &Canvas, rows: &[Row]) -> Drawn {
        let groups = position(rows.len());
        let mut chart = ChartBuilder::on(canvas)
            .margin(16)
            .margin_top(HEADER)
            .x_label_area_size(52)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..groups, 0.0..self.top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_labels(self.steps + 1)
            .y_label_formatter(&self.tick)
            .x_desc("traffic")
            .y_desc(self.axis)
            .axis_desc_style(font(15))
            .label_style(font(14))
            .axis_style(INK)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (index, row) in rows.iter().enumerate() {
            let middle = position(index) + 0.5;
            self.group(&chart, middle, row)?;
            let (x, y) = chart.backend_coord(&(middle, 0.0));
            let name = Text::new(row.traffic.name(), (x, y + 10), centred(14, VPos::Top));
            canvas.draw(&name)?;
        }
        if let Some(at) = self.line {
            let across = PathElement::new([(0.0, at), (groups, at)], INK);
            chart.plotting_area().draw(&across)?;
        }
        Ok(())
    }

    /// The bars of one traffic, each with its value above it.
    fn group(&self, chart: &Chart, middle: f64, row: &Row) -> Drawn {
        let area = chart.plotting_area();
        let place = GROUP / position(Kind::ALL.len());
        let bar = 0.9 * place;
        for (index, (kind, score)) in Kind::ALL.iter().zip(&row.scores).enumerate() {
            let left = middle - GROUP / 2.0 + place * position(index);
            let value = (self.value)(*score);
            let corners = [(left, 0.0), (left + bar, value)];
            area.draw(&Rectangle::new(corners, colour(*kind).filled()))?;
            let above = (left + bar / 2.0, value + self.top * 0.008);
            let label = (self.label)(value);
            area.draw(&Text::new(label, above, centred(12, VPos::Bottom)))?;
        }
        Ok(())
    }
}

/// The legend.
fn limiters(canvas: &Canvas) -> Drawn {
    const COLUMNS: [i32; 3] = [80, 290, 540];
    const LINES: [i32; 2] = [44, 66];
    let places = LINES.iter().flat_map(|y| COLUMNS.map(|x| (x, *y)));
    for (kind, place) in Kind::ALL.into_iter().zip(places) {
        legend(canvas, place, kind.name(), colour(kind))?;
    }
    Ok(())
}
