//! The flags of what a type can be beyond a plain sequence.
//!
//! The flags make one [`TypeOptions`]; which of them go together is for the
//! service to say.

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::domain::snowflake::TimeUnit;
use crate::domain::{AtLimit, Mode, OnRedisLoss, Opaque, Period, Sites, TypeOptions};

/// The flag `--mode`.
#[derive(Args, Clone, Debug)]
pub struct ModeFlag {
    /// How its ids are handed out: in one order across the cluster (strict), from
    /// ranges of each node (segment), from one of 64 shards by a gate pass
    /// (sharded), or from the clock (snowflake)
    #[arg(long, value_parser = PossibleValuesParser::new(Mode::ALL.map(Mode::as_str)))]
    pub mode: Option<String>,
}

/// Flags of options that can change as long as the type has issued no id.
#[derive(Args, Clone, Debug, Default)]
pub struct OptionFlags {
    /// At the highest id: fail (error), or start again at the first one and so
    /// repeat ids (cycle)
    #[arg(long, value_name = "WHAT", value_parser = at_limit)]
    at_limit: Option<AtLimit>,
    /// How ids are written as text, such as '{prefix}{date:yyMMdd}{seq:06}'
    #[arg(long, value_name = "TEXT")]
    format: Option<String>,
    /// Start again with each period: daily, monthly or yearly
    #[arg(long, value_name = "PERIOD", value_parser = calendar)]
    calendar: Option<Calendar>,
    /// IANA name of the time zone of dates and periods [default: UTC]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// The lowest 8 bits of every id of a sharded type, 0 to 255
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    app_id: Option<i64>,
    /// Bits of time, worker and sequence of a snowflake type [default: 41/10/12]
    #[arg(long, value_name = "T/W/S", value_parser = layout)]
    layout: Option<Bits>,
    /// Time zero of a snowflake type: RFC 3339, or milliseconds since 1970
    /// [default: 2010-11-04T01:42:54.657Z]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = epoch)]
    epoch: Option<i64>,
    /// Unit of the time of a snowflake type: ms or s [default: ms]
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    unit: Option<TimeUnit>,
    /// How many independent range stores can ever share the ids, 2 to 1024
    #[arg(long, value_name = "N", requires = "site")]
    sites: Option<u16>,
    /// Which of the sites this range store is, from 0
    #[arg(long, value_name = "N", requires = "sites")]
    site: Option<u16>,
    /// Without Redis, a strict type fails (fail), or goes on without one order
    /// across the cluster (segment)
    #[arg(long, value_name = "WHAT", value_parser = on_redis_loss)]
    on_redis_loss: Option<OnRedisLoss>,
}

/// Flags of options that never change.
#[derive(Args, Clone, Debug, Default)]
pub struct OpaqueFlags {
    /// Ids tell nothing about how many there are
    #[arg(long)]
    opaque: bool,
    /// How often the key of an opaque type can be changed, and one more
    /// [default: 16]
    #[arg(long, value_name = "N", requires = "opaque")]
    slices: Option<u16>,
}

/// A period, or `none`.
type Calendar = Choice<Period>;

/// A value, or the word for none.
#[derive(Clone, Copy, Debug)]
enum Choice<T> {
    Some(T),
    None,
}

/// The three widths of a layout.
type Bits = [u8; 3];

impl OptionFlags {
    /// Whether none is given.
    pub fn is_empty(&self) -> bool {
        let OptionFlags {
            at_limit,
            format,
            calendar,
            time_zone,
            app_id,
            layout,
            epoch,
            unit,
            sites,
            site,
            on_redis_loss,
        } = self;
        at_limit.is_none()
            && format.is_none()
            && calendar.is_none()
            && time_zone.is_none()
            && app_id.is_none()
            && layout.is_none()
            && epoch.is_none()
            && unit.is_none()
            && sites.is_none()
            && site.is_none()
            && on_redis_loss.is_none()
    }

    /// Replaces in `options` what is given; an empty text and the period `none`
    /// take away what was there.
    pub fn apply_to(self, options: &mut TypeOptions) {
        options.at_limit = self.at_limit.unwrap_or(options.at_limit);
        options.on_redis_loss = self.on_redis_loss.unwrap_or(options.on_redis_loss);
        if let Some(format) = self.format {
            options.format = Some(format).filter(|text| !text.is_empty());
        }
        if let Some(zone) = self.time_zone {
            options.time_zone = Some(zone).filter(|text| !text.is_empty());
        }
        match self.calendar {
            Some(Choice::Some(period)) => options.calendar = Some(period),
            Some(Choice::None) => options.calendar = None,
            None => {}
        }
        options.app_id = self.app_id.or(options.app_id);
        if self.layout.is_some() || self.epoch.is_some() || self.unit.is_some() {
            let mut layout = options.snowflake.unwrap_or_default();
            if let Some(bits) = self.layout {
                [layout.time_bits, layout.worker_bits, layout.sequence_bits] = bits;
            }
            layout.epoch_ms = self.epoch.unwrap_or(layout.epoch_ms);
            layout.unit = self.unit.unwrap_or(layout.unit);
            options.snowflake = Some(layout);
        }
        if let (Some(count), Some(site)) = (self.sites, self.site) {
            options.sites = Some(Sites { count, site });
        }
    }
}

impl OpaqueFlags {
    /// Adds to `options` what is given.
    pub fn apply_to(self, options: &mut TypeOptions) {
        if self.opaque {
            let default = Opaque::default();
            options.opaque = Some(Opaque { slices: self.slices.unwrap_or(default.slices) });
        }
    }
}

fn at_limit(text: &str) -> Result<AtLimit, String> {
    match text {
        "error" => Ok(AtLimit::Error),
        "cycle" => Ok(AtLimit::Cycle),
        _ => Err("it must be error or cycle".to_owned()),
    }
}

fn on_redis_loss(text: &str) -> Result<OnRedisLoss, String> {
    match text {
        "fail" => Ok(OnRedisLoss::Fail),
        "segment" => Ok(OnRedisLoss::Segment),
        _ => Err("it must be fail or segment".to_owned()),
    }
}

fn calendar(text: &str) -> Result<Calendar, String> {
    let known = [Period::Daily, Period::Monthly, Period::Yearly];
    match known.into_iter().find(|period| period.as_str() == text) {
        Some(period) => Ok(Choice::Some(period)),
        None if text == "none" => Ok(Choice::None),
        None => Err("it must be daily, monthly, yearly or none".to_owned()),
    }
}

fn unit(text: &str) -> Result<TimeUnit, String> {
    match text {
        "ms" => Ok(TimeUnit::Milliseconds),
        "s" => Ok(TimeUnit::Seconds),
        _ => Err("it must be ms or s".to_owned()),
    }
}

fn layout(text: &str) -> Result<Bits, String> {
    let parts: Result<Vec<u8>, _> = text.split('/').map(str::parse).collect();
    let bits = parts.ok().and_then(|parts| Bits::try_from(parts).ok());
    bits.ok_or_else(|| "it must be bits of time, worker and sequence, such as 41/10/12".to_owned())
}

fn epoch(text: &str) -> Result<i64, String> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    let at: Result<jiff::Timestamp, _> = text.parse();
    at.map(|at| at.as_millisecond()).map_err(|_| {
        "it must be a time such as 2024-01-01T00:00:00Z, or milliseconds since 1970".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::snowflake::Layout;

    #[test]
    fn values_by_cases() {
        assert_eq!(epoch("1288834974657"), Ok(Layout::LEAF_EPOCH_MS));
        assert_eq!(epoch("2010-11-04T01:42:54.657Z"), Ok(Layout::LEAF_EPOCH_MS));
        assert_eq!(epoch("2010-11-04T02:42:54.657+01:00"), Ok(Layout::LEAF_EPOCH_MS));
        for bad in ["", "2024", "2024-01-01", "yesterday", "2024-13-01T00:00:00Z", "1e3"] {
            // A plain number is milliseconds, even where a year was meant: the
            // service shows what it makes of it.
            assert_eq!(epoch(bad).is_err(), bad != "2024", "{bad}");
        }
        assert_eq!(layout("41/10/12"), Ok([41, 10, 12]));
        for bad in ["", "41", "41/10", "41/10/12/1", "a/b/c", "41/10/256", "41-10-12"] {
            assert!(layout(bad).is_err(), "{bad}");
        }
        assert!(at_limit("wrap").is_err() && unit("m").is_err());
        assert!(calendar("weekly").is_err() && on_redis_loss("go-on").is_err());
    }

    #[test]
    fn what_is_not_given_stays() {
        let layout = Layout { worker_bits: 8, sequence_bits: 14, ..Layout::default() };
        let before = TypeOptions {
            format: Some("{seq:08}".into()),
            calendar: Some(Period::Daily),
            time_zone: Some("Europe/Paris".into()),
            snowflake: Some(layout),
            opaque: Some(Opaque { slices: 4 }),
            ..TypeOptions::default()
        };
        let mut options = before.clone();
        assert!(OptionFlags::default().is_empty());
        OptionFlags::default().apply_to(&mut options);
        OpaqueFlags::default().apply_to(&mut options);
        assert_eq!(options, before);

        let flags = OptionFlags {
            format: Some(String::new()),
            time_zone: Some(String::new()),
            calendar: Some(Choice::None),
            epoch: Some(5),
            ..OptionFlags::default()
        };
        assert!(!flags.is_empty());
        flags.apply_to(&mut options);
        let layout = Layout { epoch_ms: 5, ..layout };
        let expected = TypeOptions {
            opaque: before.opaque,
            snowflake: Some(layout),
            ..TypeOptions::default()
        };
        assert_eq!(options, expected);
    }
}
