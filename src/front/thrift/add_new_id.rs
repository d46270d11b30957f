//! The JSON of `addNewId`, as the original system's clients send it.
//!
//! Read field by field rather than into a derived struct, because every
//! message must name the field and the limit, and a field that is given twice
//! or is not known must not be passed over in silence: the type is for ever.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use serde_json::Value;

use crate::domain::{Error, LoadPercentage, TypeName, TypeSpec};

/// Every field that is known; `id_prefix` is the right spelling of `id_prifx`.
const KNOWN: [&str; 16] = [
    "project_name",
    "id_name",
    "id_prifx",
    "id_prefix",
    "id_start",
    "last_range",
    "max_range",
    "min_range",
    "last_load_time",
    "applicant",
    "redis_flag",
    "state",
    "min_load_interval",
    "load_percentage",
    "lock_expire",
    "other_info",
];

/// The type that `json` describes.
///
/// Every error is `INVALID_ARGUMENT` and names the field of the JSON and its
/// limit. Whether the name is free and the Redis instance exists is not
/// decided here.
pub fn parse(json: &str) -> Result<TypeSpec, Error> {
    let mut fields: Fields = serde_json::from_str(json).map_err(|error| {
        Error::invalid(
            "newIdInfo",
            format!("newIdInfo must be a JSON object, each field given once: {error}"),
        )
    })?;
    if let Some(unknown) = fields.0.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        let shown: String = unknown.chars().take(64).collect();
        return Err(Error::invalid(
            "newIdInfo",
            format!(
                "newIdInfo has a field {shown:?} that is not known; known are: {}",
                KNOWN.join(", ")
            ),
        ));
    }

    let project = fields.text("project_name")?;
    let applicant = fields.text("applicant")?;
    let name = fields.text("id_name")?;
    let name = TypeName::parse(&name).map_err(|error| {
        // The rule speaks of `name`; here it is called `id_name`.
        Error::invalid("id_name", format!("id_{}", error.message))
    })?;
    let mut spec = TypeSpec::new(name);

    spec.prefix = fields.prefix()?;
    // The first id of a type is id_start + 1 there, and clients rely on it.
    spec.first_id = 1 + fields.integer("id_start", 1, TypeSpec::HIGHEST_ID - 1)?;
    // What the original keeps here is the outcome of its own sizing; a new
    // type has none yet, so the value is checked and not used.
    fields.integer("last_range", 0, i64::MAX)?;
    fields.take("last_load_time");
    spec.min_range = fields.integer("min_range", 1, TypeSpec::LONGEST_RANGE - 1)?;
    spec.max_range = fields.integer("max_range", spec.min_range + 1, TypeSpec::LONGEST_RANGE)?;
    spec.load_interval_ms = 1_000 * fields.integer("min_load_interval", 1, 86_400)?;
    spec.load_percentage = fields.fraction("load_percentage")?;
    spec.lock_ttl_ms = 1_000 * fields.integer("lock_expire", 1, 600)?;
    spec.instance = Some(fields.instance()?);
    fields.integer("state", 1, 1)?;
    let other = match fields.0.get("other_info") {
        None | Some(Value::Null) => String::new(),
        Some(_) => fields.text("other_info")?,
    };
    spec.description = describe(&project, &applicant, &other);
    if spec.description.len() > TypeSpec::MAX_DESCRIPTION {
        return Err(Error::invalid(
            "other_info",
            format!(
                "project_name, applicant and other_info have {} bytes together; the limit is {}",
                spec.description.len(),
                TypeSpec::MAX_DESCRIPTION
            ),
        ));
    }
    spec.validate()?;
    Ok(spec)
}

/// What people read later, without the parts that are empty.
fn describe(project: &str, applicant: &str, other: &str) -> String {
    let parts =
        [("Project: ", project.trim()), ("Applicant: ", applicant.trim()), ("", other.trim())];
    let filled = parts.iter().filter(|(_, text)| !text.is_empty());
    let lines: Vec<String> = filled.map(|(label, text)| format!("{label}{text}")).collect();
    lines.join("\n")
}

/// A JSON object; a field that is given twice is an error.
struct Fields(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if fields.contains_key(&key) {
                        let shown: String = key.chars().take(64).collect();
                        return Err(de::Error::custom(format!("field {shown:?} is given twice")));
                    }
                    fields.insert(key, value);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl Fields {
    fn take(&mut self, field: &'static str) -> Option<Value> {
        self.0.remove(field)
    }

    fn required(&mut self, field: &'static str) -> Result<Value, Error> {
        self.take(field).ok_or_else(|| Error::invalid(field, format!("{field} is missing")))
    }

    fn text(&mut self, field: &'static str) -> Result<String, Error> {
        match self.required(field)? {
            Value::String(text) => Ok(text),
            other => Err(wrong(field, &other, "it must be text")),
        }
    }

    fn integer(&mut self, field: &'static str, low: i64, high: i64) -> Result<i64, Error> {
        let value = self.required(field)?;
        match value.as_i64() {
            Some(number) if (low..=high).contains(&number) => Ok(number),
            _ if low == high => Err(wrong(field, &value, &format!("it must be {low}"))),
            _ => Err(wrong(
                field,
                &value,
                &format!("it must be a whole number from {low} to {high}"),
            )),
        }
    }

    fn fraction(&mut self, field: &'static str) -> Result<LoadPercentage, Error> {
        let value = self.required(field)?;
        value
            .as_f64()
            .and_then(|fraction| LoadPercentage::from_fraction(fraction).ok())
            .ok_or_else(|| wrong(field, &value, "it must be a number from 0 to 1"))
    }

    fn prefix(&mut self) -> Result<String, Error> {
        let field = match (self.0.contains_key("id_prifx"), self.0.contains_key("id_prefix")) {
            (true, true) => {
                return Err(Error::invalid(
                    "id_prefix",
                    "id_prifx and id_prefix are the same field; give one of them",
                ));
            }
            (false, true) => "id_prefix",
            _ => "id_prifx",
        };
        let prefix = self.text(field)?;
        let length = prefix.chars().count();
        if length > TypeSpec::MAX_PREFIX {
            return Err(Error::invalid(
                field,
                format!("{field} has {length} characters; the limit is {}", TypeSpec::MAX_PREFIX),
            ));
        }
        if prefix.chars().any(char::is_control) {
            return Err(Error::invalid(field, format!("{field} must not hold control characters")));
        }
        Ok(prefix)
    }

    /// The number or the name of a Redis instance.
    fn instance(&mut self) -> Result<String, Error> {
        match self.required("redis_flag")? {
            Value::Number(number) if number.as_i64().is_some_and(|n| n >= 1) => {
                Ok(number.to_string())
            }
            Value::String(name) if TypeName::is_legal(&name) => Ok(name),
            other => Err(wrong(
                "redis_flag",
                &other,
                "it must be the number (from 1) or the name of a Redis instance",
            )),
        }
    }
}

/// The error for a `value` that breaks `rule`; shows no more of it than a
/// person needs.
fn wrong(field: &'static str, value: &Value, rule: &str) -> Error {
    let text = value.to_string();
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Error::invalid(field, format!("{field} is {shown}: {rule}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::ErrorCode;

    fn example() -> Value {
        json!({
            "project_name": "shop", "id_name": "order", "id_prifx": "OD", "id_start": 1000,
            "last_range": 0, "max_range": 100_000, "min_range": 1_000,
            "last_load_time": "2026-11-21 00:00:00", "applicant": "ann", "redis_flag": 1,
            "state": 1, "min_load_interval": 600, "load_percentage": 0.25, "lock_expire": 10,
            "other_info": "orders of the shop"
        })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut object = example();
        object[field] = value;
        object
    }

    fn without(field: &str) -> Value {
        let mut object = example();
        object.as_object_mut().unwrap().remove(field);
        object
    }

    #[test]
    fn every_field_finds_its_place() {
        let spec = parse(&example().to_string()).unwrap();
        let mut expected = TypeSpec::new(TypeName::parse("order").unwrap());
        expected.prefix = "OD".into();
        expected.description = "Project: shop\nApplicant: ann\norders of the shop".into();
        expected.first_id = 1_001;
        expected.min_range = 1_000;
        expected.max_range = 100_000;
        expected.load_interval_ms = 600_000;
        expected.load_percentage = LoadPercentage::from_fraction(0.25).unwrap();
        expected.lock_ttl_ms = 10_000;
        expected.instance = Some("1".into());
        assert_eq!(spec, expected);
    }

    #[test]
    fn what_may_vary() {
        let cases = [
            without("last_load_time"),
            without("other_info"),
            with("last_load_time", json!(null)),
            with("last_load_time", json!(1_700_000_000)),
            with("id_prifx", json!("")),
            with("redis_flag", json!("main")),
            with("redis_flag", json!("2")),
            with("load_percentage", json!(0)),
            with("load_percentage", json!(1)),
            with("id_start", json!(1)),
            with("id_start", json!(i64::MAX - 2)),
            with("last_range", json!(5)),
            with("max_range", json!(1_001)),
        ];
        for case in cases {
            let spec = parse(&case.to_string()).unwrap_or_else(|e| panic!("{case}: {e}"));
            assert!(spec.validate().is_ok());
        }
        let mut renamed = without("id_prifx");
        renamed["id_prefix"] = json!("P");
        assert_eq!(parse(&renamed.to_string()).unwrap().prefix, "P");
        let bare = with("applicant", json!(" "));
        let description = parse(&bare.to_string()).unwrap().description;
        assert_eq!(description, "Project: shop\norders of the shop");
    }

    #[test]
    fn each_broken_field_is_named_with_its_limit() {
        let long = "x".repeat(65);
        let cases = [
            ("id_name", with("id_name", json!("a b")), "1 to 128"),
            ("id_name", with("id_name", json!("")), "1 to 128"),
            ("id_name", with("id_name", json!(5)), "text"),
            ("id_prifx", with("id_prifx", json!(long)), "64"),
            ("id_prifx", with("id_prifx", json!("a\n")), "control"),
            ("id_prefix", with("id_prefix", json!("x")), "one of them"),
            ("id_start", with("id_start", json!(0)), "from 1 to"),
            ("id_start", with("id_start", json!(-1)), "from 1 to"),
            ("id_start", with("id_start", json!(1.5)), "whole number"),
            ("id_start", with("id_start", json!("7")), "whole number"),
            ("id_start", with("id_start", json!(i64::MAX - 1)), "from 1 to"),
            ("id_start", with("id_start", json!(u64::MAX)), "from 1 to"),
            ("last_range", with("last_range", json!(-1)), "from 0"),
            ("min_range", with("min_range", json!(0)), "from 1 to"),
            ("max_range", with("max_range", json!(1_000)), "from 1001 to"),
            ("max_range", with("max_range", json!(i64::MAX)), "1000000000000"),
            ("redis_flag", with("redis_flag", json!(0)), "from 1"),
            ("redis_flag", with("redis_flag", json!("a b")), "name"),
            ("redis_flag", with("redis_flag", json!(null)), "number"),
            ("state", with("state", json!(2)), "must be 1"),
            ("min_load_interval", with("min_load_interval", json!(0)), "86400"),
            ("min_load_interval", with("min_load_interval", json!(86_401)), "86400"),
            ("load_percentage", with("load_percentage", json!(1.1)), "0 to 1"),
            ("load_percentage", with("load_percentage", json!("0.1")), "0 to 1"),
            ("lock_expire", with("lock_expire", json!(601)), "600"),
            ("project_name", with("project_name", json!([])), "text"),
            ("applicant", with("applicant", json!(null)), "text"),
            ("other_info", with("other_info", json!({})), "text"),
            ("other_info", with("other_info", json!("x".repeat(65_536))), "65535"),
            ("newIdInfo", with("color", json!("red")), "color"),
        ];
        for (field, case, limit) in cases {
            let error = parse(&case.to_string()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert_eq!(error.field, Some(field), "{error}");
            assert!(error.message.contains(field), "{error}");
            assert!(error.message.contains(limit), "{error}");
            assert!(error.message.len() < 400, "{error}");
        }
    }

    #[test]
    fn each_missing_field_is_named() {
        for field in KNOWN {
            if ["id_prefix", "last_load_time", "other_info"].contains(&field) {
                continue;
            }
            let error = parse(&without(field).to_string()).unwrap_err();
            assert_eq!(error.field, Some(field), "{error}");
            assert!(error.message.contains("missing"), "{error}");
        }
    }

    #[test]
    fn what_is_no_object_is_told_so() {
        let twice = r#"{"id_name":"a","id_name":"b"}"#;
        let deep = "[".repeat(100_000);
        for text in ["", "{", "[]", "1", "null", "{\"a\"}", "not json", twice, &deep] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.field, Some("newIdInfo"), "{error}");
            assert!(error.message.contains("JSON object"), "{error}");
        }
        assert!(parse(twice).unwrap_err().message.contains("twice"));
    }
}
