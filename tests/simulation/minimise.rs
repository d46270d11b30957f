//! A shorter schedule that still fails.

use crate::mistakes::Mistake;
use crate::plan::Plan;
use crate::run::run;

/// Takes away kinds of mishaps, events and clients, one by one, as long as something
/// is still violated.
pub fn minimise(plan: Plan, mistake: Option<Mistake>) -> Plan {
    let fails = |plan: &Plan| run(plan, mistake, false).violation.is_some();
    if !fails(&plan) {
        return plan;
    }
    let mut least = plan;
    loop {
        let mut shorter = Vec::new();
        for index in 0..least.rates.len() {
            let mut plan = least.clone();
            if std::mem::take(&mut plan.rates[index]) > 0 {
                shorter.push(plan);
            }
        }
        for index in 0..least.events.len() {
            let mut plan = least.clone();
            plan.events.remove(index);
            shorter.push(plan);
        }
        if least.clients > 1 {
            shorter.push(Plan { clients: least.clients - 1, ..least.clone() });
        }
        match shorter.into_iter().find(|plan| fails(plan)) {
            Some(plan) => least = plan,
            None => return least,
        }
    }
}
