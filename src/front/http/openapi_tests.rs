//! The document and the code are one thing.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::domain::access::Role;
use crate::front::http::fake::{Fake, Server};
use crate::front::http::routes;
use crate::front::http::tests::{call, filled_in};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/openapi.json");

fn made() -> Value {
    document(&routes::operations::<Fake>())
}

/// Method, path and operation of each operation of a document.
fn all(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, methods)| {
        methods
            .as_object()
            .unwrap()
            .iter()
            .map(|(method, operation)| (method.to_uppercase(), path.clone(), operation.clone()))
    });
    operations.collect()
}

#[test]
fn the_committed_document_is_that_of_the_code() {
    let made = serde_json::to_string_pretty(&made()).unwrap() + "\n";
    if std::env::var_os("IDGEN_UPDATE").is_some() {
        std::fs::write(FILE, &made).unwrap();
    }
    let committed = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        made == committed,
        "idl/openapi.json is out of date: run IDGEN_UPDATE=1 cargo test --lib openapi"
    );
}

#[test]
fn a_node_serves_the_document_to_everybody() {
    let server = Server::start();
    let url = format!("{}/api/v1/openapi.json", server.url());
    let mut answer = ureq::get(url).call().unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json");
    let served: Value = answer.body_mut().read_json().unwrap();
    assert_eq!(served, made());
}

/// An address of the document that is not served is a mistake of the table; one that
/// is served without being in the table cannot be, as long as nobody makes routes
/// elsewhere.
#[test]
fn every_operation_is_served_and_no_other() {
    let server = Server::start();
    let operations = all(&made());
    assert!(operations.len() >= 47, "{} operations", operations.len());
    for (method, path, _) in &operations {
        let path = filled_in(path);
        let reply = call(&server, method, &path, Value::Null);
        let code =
            if reply.body.starts_with('{') { reply.json()["code"].clone() } else { json!(0) };
        assert!(
            reply.status != 405 && code != "NO_SUCH_ADDRESS",
            "{method} {path}: {}",
            reply.body
        );
    }
    // A name of an address may look like one in another: `/types/preview`.
    let table = routes::operations::<Fake>();
    for served in &table {
        let known: BTreeSet<_> = table
            .iter()
            .filter(|other| [served.path, served.served_at].contains(&other.path))
            .map(|other| other.method.as_str())
            .collect();
        let path = filled_in(served.path);
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            if !known.contains(method) {
                call(&server, method, &path, Value::Null).problem(405, "METHOD_NOT_ALLOWED");
            }
        }
    }
    // Addresses of the API are made in one place, of the table.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/front/http");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let name = path.file_name().unwrap().to_string_lossy().to_string();
        let routes = text.matches(concat!(".ro", "ute(")).count();
        if routes > 0 {
            found.push((name, routes));
        }
    }
    // Health, readiness, metrics, and the table.
    assert_eq!(found, [("routes.rs".to_owned(), 4)], "a route that is not an operation");
}

#[test]
fn every_operation_says_all_there_is_to_say() {
    let made = made();
    assert_eq!(made["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for (method, path, operation) in all(&made) {
        let at = format!("{method} {path}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{at}");
        for text in ["summary", "description"] {
            assert!(!operation[text].as_str().unwrap().is_empty(), "{at}: {text}");
        }
        let is_open = operation["security"] == json!([]);
        let role = operation["x-required-role"].as_str();
        assert_eq!(role.is_none(), is_open, "{at}");
        assert!(role.is_none_or(|r| Role::parse(r).is_ok()), "{at}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{at}: no success");
        // A login is open, and refuses a wrong password.
        assert!(is_open || responses.contains_key("401"), "{at}");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            assert!(!parameter["description"].as_str().unwrap().is_empty(), "{at}: {name}");
            // Headers are bounded together, and what is too long is cut.
            if parameter["in"] == "header" {
                continue;
            }
            assert_bounded(&format!("{at}: {name}"), &parameter["schema"]);
        }
        // Each parameter of the path is described, and nothing else is.
        let in_path = operation["parameters"].as_array().into_iter().flatten();
        let in_path: BTreeSet<_> = in_path
            .filter(|p| p["in"] == "path")
            .map(|p| format!("{{{}}}", p["name"].as_str().unwrap()))
            .collect();
        let wanted: BTreeSet<_> =
            path.split('/').filter(|part| part.starts_with('{')).map(str::to_owned).collect();
        assert_eq!(in_path, wanted, "{at}");
    }
}

/// A parameter has a type, and its type has bounds.
fn assert_bounded(at: &str, schema: &Value) {
    let has = |name: &str| schema.get(name).is_some();
    let bounded = match schema["type"].as_str() {
        Some("integer" | "number") => has("minimum") && has("maximum"),
        Some("string") => has("maxLength") || has("enum") || has("oneOf"),
        Some("boolean") => true,
        _ => has("enum") || has("oneOf"),
    };
    assert!(bounded, "{at} has no bounds: {schema}");
}

#[test]
fn schemas_have_descriptions_and_every_reference_leads_somewhere() {
    let made = made();
    let schemas = made["components"]["schemas"].as_object().unwrap();
    let names = component_names();
    assert_eq!(names.len(), schemas.len(), "two types have one name: {names:?}");
    assert!(schemas.contains_key("ListOfType"), "{:?}", schemas.keys());
    for (name, schema) in schemas {
        assert!(schema["description"].is_string(), "{name}");
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            let text = schema["description"].as_str();
            let named = schema.get("$ref").is_some();
            assert!(named || text.is_some_and(|t| !t.is_empty()), "{name}.{field}");
            let text = text.unwrap_or_default();
            assert!(!text.contains("See `") && !text.contains("::"), "{name}.{field}: {text}");
        }
    }
    let text = made.to_string();
    let responses = made["components"]["responses"].as_object().unwrap();
    for reference in text.split("#/components/responses/").skip(1) {
        assert!(responses.contains_key(reference.split('"').next().unwrap()), "{reference}");
    }
    for reference in text.split(COMPONENTS).skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
}

/// The names of all types, as Rust has them.
fn component_names() -> BTreeSet<String> {
    let mut taken = settings().for_deserialize().into_generator();
    let mut answered = settings().for_serialize().into_generator();
    answered.subschema_for::<ProblemJson>();
    for operation in routes::operations::<Fake>() {
        let request = Request::new(taken);
        taken = describe(&operation, request, &mut answered, &mut BTreeSet::new()).1.schemas;
    }
    let taken = taken.take_definitions(true);
    taken.into_iter().chain(answered.take_definitions(true)).map(|(name, _)| name).collect()
}

/// A type that is both taken and answered must look the same both ways, because it has
/// one name in the document.
#[test]
fn what_is_taken_and_what_is_answered_have_names_of_their_own() {
    let mut taken = settings().for_deserialize().into_generator();
    let mut answered = settings().for_serialize().into_generator();
    for operation in routes::operations::<Fake>() {
        let request = Request::new(taken);
        taken = describe(&operation, request, &mut answered, &mut BTreeSet::new()).1.schemas;
    }
    let answered = answered.take_definitions(true);
    for (name, schema) in taken.take_definitions(true) {
        let other = answered.get(&name);
        assert!(other.is_none_or(|other| *other == schema), "{name} has two forms");
    }
}

#[test]
fn ids_of_answers_may_be_text_and_numbers_of_instances_may_not() {
    let made = made();
    let field = |schema: &str, name: &str| {
        made["components"]["schemas"][schema]["properties"][name]["type"].clone()
    };
    assert_eq!(field("Type", "next_id"), json!(["integer", "string"]));
    assert_eq!(field("Decoded", "id"), json!(["integer", "null", "string"]));
    assert_eq!(field("Type", "version"), json!("integer"));
    assert_eq!(field("Instance", "id"), json!("integer"));
    let ids = &made["components"]["schemas"]["Ids"]["properties"]["ids"]["items"];
    assert_eq!(ids["type"], json!(["integer", "string"]));
}
