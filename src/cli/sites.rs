//! `idgen type check-sites`: do the types that several sites share fit together?
//!
//! Sites have independent range stores, so none of them can check the others.
//! An operator who reaches a node of each can.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::client::{Client, ClientArgs};
use super::exit::{FAILED, Failure};
use super::output::{self, table};
use super::types::all_types;
use super::{Console, Environment};
use crate::domain::Sites;
use crate::front::http::schema::TypeJson;

/// Options of `type check-sites`.
#[derive(Args, Clone, Debug)]
pub struct CheckSitesArgs {
    /// Address of the admin API of a node of another site; repeat it for each. The
    /// admin token must be the same at all sites
    #[arg(long = "peer", value_name = "URL", required = true)]
    peers: Vec<String>,
    #[command(flatten)]
    client: ClientArgs,
}

/// A type that sites share, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    name: String,
    /// The numbers of the sites that have it, in the order of the nodes asked.
    sites: Vec<u16>,
    /// `None` if the sites fit.
    problem: Option<String>,
}

/// Runs `idgen type check-sites`. Fails if two sites would issue the same ids.
pub fn run(
    args: CheckSitesArgs,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let mut found = Vec::new();
    let own = Client::new(&args.client, environment)?;
    found.push((own.url().to_owned(), all_types(&own, "", "")?));
    for peer in &args.peers {
        let there = ClientArgs { url: Some(peer.clone()), ..args.client.clone() };
        let client = Client::new(&there, environment)?;
        found.push((client.url().to_owned(), all_types(&client, "", "")?));
    }
    let findings = compare(&found);
    if args.client.json {
        output::json(console.out, &findings)?;
    } else {
        let row = |finding: &Finding| {
            let sites: Vec<String> = finding.sites.iter().map(u16::to_string).collect();
            let verdict = finding.problem.clone().unwrap_or_else(|| "fits".to_owned());
            vec![finding.name.clone(), sites.join(", "), verdict]
        };
        table(console.out, &["name", "sites", "verdict"], findings.iter().map(row).collect())?;
    }
    match findings.iter().filter(|finding| finding.problem.is_some()).count() {
        0 => Ok(()),
        wrong => Err(Failure::new(FAILED, format!("{wrong} types do not fit between the sites"))),
    }
}

/// Compares the types of each node, given with its address.
fn compare(found: &[(String, Vec<TypeJson>)]) -> Vec<Finding> {
    let mut by_name: BTreeMap<&str, Vec<(&str, &TypeJson)>> = BTreeMap::new();
    for (url, types) in found {
        for id_type in types {
            by_name.entry(&id_type.name).or_default().push((url, id_type));
        }
    }
    let shared = by_name
        .into_iter()
        .filter(|(_, here)| here.iter().any(|(_, id_type)| sites_of(id_type).is_some()));
    shared
        .map(|(name, here)| Finding {
            name: name.to_owned(),
            sites: here.iter().filter_map(|(_, t)| sites_of(t)).map(|s| s.site).collect(),
            problem: problem(&here),
        })
        .collect()
}

fn sites_of(id_type: &TypeJson) -> Option<Sites> {
    serde_json::from_value(id_type.options.get("sites")?.clone()).ok()
}

/// Why the nodes that have a type would issue the same ids, or texts.
fn problem(here: &[(&str, &TypeJson)]) -> Option<String> {
    let (first_url, first) = here.first()?;
    let plan = |id_type: &TypeJson| {
        // As JSON: a newer node may have options that this version does not know.
        let mut options = id_type.options.clone();
        options.insert("sites".to_owned(), json!(sites_of(id_type).map(|sites| sites.count)));
        (id_type.mode.clone(), id_type.max_id, id_type.prefix.clone(), options)
    };
    let mut owners = BTreeMap::new();
    for (url, id_type) in here {
        let Some(sites) = sites_of(id_type) else {
            return Some(format!("{url} has a type of this name without sites"));
        };
        if let Some(other) = owners.insert(sites.site, url) {
            return Some(format!("{other} and {url} are both site {}", sites.site));
        }
        if plan(id_type) != plan(first) {
            return Some(format!("{first_url} and {url} have different settings"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{InstanceId, Mode, TypeName, TypeOptions, TypeRecord, TypeSpec};

    fn id_type(name: &str, sites: Option<(u16, u16)>) -> TypeJson {
        let sites = sites.map(|(count, site)| Sites { count, site });
        let options = TypeOptions { sites, ..TypeOptions::default() };
        let name = TypeName::parse(name).unwrap();
        let spec = TypeSpec { mode: Mode::Segment, options, ..TypeSpec::new(name) };
        TypeJson::from(TypeRecord::created(&spec, InstanceId(1), 0))
    }

    fn verdict(types: Vec<TypeJson>) -> Vec<Finding> {
        let nodes = types.into_iter().enumerate();
        compare(&nodes.map(|(n, t)| (format!("http://{n}"), vec![t])).collect::<Vec<_>>())
    }

    #[test]
    fn sites_by_cases() {
        let a = |sites| id_type("a", sites);
        for (types, problem) in [
            (vec![a(Some((4, 0))), a(Some((4, 3)))], None),
            (vec![a(Some((4, 0))), a(Some((4, 0)))], Some("both site 0")),
            (vec![a(Some((4, 0))), a(Some((3, 1)))], Some("different settings")),
            (vec![a(Some((4, 0))), a(None)], Some("without sites")),
            (vec![TypeJson { max_id: 99, ..a(Some((4, 0))) }, a(Some((4, 1)))], Some("settings")),
        ] {
            let found = verdict(types);
            let told = found[0].problem.as_deref();
            assert_eq!(told.is_some(), problem.is_some(), "{found:?}");
            assert!(problem.is_none_or(|part| told.unwrap().contains(part)), "{found:?}");
        }
    }

    #[test]
    fn what_is_not_shared_is_not_compared() {
        assert_eq!(verdict(vec![id_type("a", None), id_type("b", None)]), []);
        let one = verdict(vec![id_type("a", Some((2, 1))), id_type("b", None)]);
        assert_eq!(
            (one.len(), one[0].problem.as_deref(), one[0].sites.as_slice()),
            (1, None, &[1][..])
        );
    }
}
