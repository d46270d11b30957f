//! The results as a picture.

use std::error::Error as StdError;
use std::path::Path;

use plotters::coord::ranged1d::SegmentValue;
use plotters::prelude::*;

use crate::line_up::{SEGMENT_8X32, STRICT_8X32};
use crate::numbers::Spread;
use crate::results::Results;

const WIDTH: u32 = 900;
/// For each line, and for the title and the axis of each of the two charts.
const ROW: u32 = 22;
const AROUND: u32 = 80;

const GOOD: RGBColor = RGBColor(0x2a, 0x78, 0x8e);
const BAD: RGBColor = RGBColor(0xc4, 0x4e, 0x1c);
const FRAME: RGBColor = RGBColor(0x88, 0x88, 0x88);
const FONT: &str = "sans-serif";

/// One line of a chart: a dot at the median, a whisker over the spread.
struct Line {
    name: String,
    spread: Spread,
    words: String,
    colour: RGBColor,
}

/// Draws the ratios against their targets, and below them requests/s.
pub fn draw(results: &Results, path: &Path) -> Result<(), Box<dyn StdError>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let (ratios, rates) = (ratio_lines(results), rate_lines(results));
    let height = |lines: &[Line]| AROUND + ROW * lines.len() as u32;
    let (upper, lower) = (height(&ratios), height(&rates));
    let root = SVGBackend::new(path, (WIDTH, upper + lower)).into_drawing_area();
    root.fill(&WHITE)?;
    let (upper, lower) = root.split_vertically(upper);
    chart(&upper, "Targets: 1 is met, more is better", &ratios, Some(1.0), |x| format!("{x:.1}"))?;
    chart(&lower, "Requests/s, thousands", &rates, None, |x| format!("{x:.0}"))?;
    root.present()?;
    Ok(())
}

/// A target reached twice over is as good as one reached ten times: it must not
/// squeeze the others together.
const FAR: f64 = 2.0;

fn ratio_lines(results: &Results) -> Vec<Line> {
    let lines = results.ratios.iter().filter_map(|ratio| {
        let Spread { median, min, max } = ratio.measured?;
        let reached = |value| ratio.target.reached(value).map(|reached| reached.min(FAR));
        let ends = [reached(min)?, reached(median)?, reached(max)?];
        let colour = if ratio.is_missed() { BAD } else { GOOD };
        let words = format!("{median:.2} ({})", ratio.target.words());
        let spread = Spread { median: ends[1], ..Spread::of(ends.into_iter())? };
        Some(Line { name: ratio.name.clone(), spread, words, colour })
    });
    lines.collect()
}

/// Those with pipelines would squeeze the others, and are among the ratios.
fn rate_lines(results: &Results) -> Vec<Line> {
    let pipelines = [SEGMENT_8X32, STRICT_8X32];
    let shown = results.contenders.iter().filter(|c| !pipelines.contains(&c.name));
    let lines = shown.filter_map(|contender| {
        let spread = contender.spread(|s| Some(s.requests_per_s / 1_000.0))?;
        let words = format!("{:.0}", spread.median);
        Some(Line { name: contender.name.to_owned(), spread, words, colour: GOOD })
    });
    lines.collect()
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn chart(
    area: &Area<'_>,
    title: &str,
    lines: &[Line],
    mark: Option<f64>,
    format_x: fn(&f64) -> String,
) -> Result<(), Box<dyn StdError>> {
    if lines.is_empty() {
        return Ok(());
    }
    let count = lines.len() as i32;
    let right = lines.iter().map(|line| line.spread.max).fold(mark.unwrap_or(0.0), f64::max);
    // Room for the words behind the whiskers.
    let right = right * 1.3;
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 18))
        .margin(10)
        .x_label_area_size(26)
        .y_label_area_size(260)
        .build_cartesian_2d(0.0..right, (0..(count - 1).max(1)).into_segmented())?;
    // The first is at the top.
    let place = |n: usize| count - 1 - n as i32;
    let name = |value: &SegmentValue<i32>| match value {
        SegmentValue::CenterOf(n) => {
            lines.get((count - 1 - n) as usize).map_or(String::new(), |line| line.name.clone())
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .axis_style(FRAME)
        .y_labels(lines.len())
        .y_label_formatter(&name)
        .x_label_formatter(&format_x)
        .label_style((FONT, 13))
        .draw()?;
    if let Some(mark) = mark {
        let ends = [SegmentValue::Exact(0), SegmentValue::Last];
        let line = ends.map(|end| (mark, end)).to_vec();
        chart.draw_series(std::iter::once(PathElement::new(line, FRAME.stroke_width(2))))?;
    }
    for (n, Line { spread, words, colour, .. }) in lines.iter().enumerate() {
        let y = || SegmentValue::CenterOf(place(n));
        let whisker = vec![(spread.min, y()), (spread.max, y())];
        chart.draw_series([PathElement::new(whisker, colour.stroke_width(3))])?;
        chart.draw_series([Circle::new((spread.median, y()), 5, colour.filled())])?;
        let text = EmptyElement::at((spread.max, y()))
            + Text::new(words.clone(), (10, -6), (FONT, 13).into_font());
        chart.draw_series(std::iter::once(text))?;
    }
    Ok(())
}
