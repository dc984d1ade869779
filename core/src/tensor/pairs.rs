//! Keys are proven to differ where no memory was lent for them: each is compared with each, or ascending runs are merged.

use crate::limits::NAME_RUNS_MAX;
use crate::span::multiply;
use crate::tensor::entry::{Member, Members};
#[cfg(feature = "fast")]
use crate::tensor::fingerprint::fingerprint;
use crate::tensor::verdict::{Blamed, Verdict, name_span};

/// Compares each key with each, and reports equal ones.
#[cfg(not(feature = "fast"))]
pub(crate) fn compare(mut members: Members<'_>, blamed: Blamed, verdict: &mut Verdict) {
    while let Some(first) = members.next() {
        for second in members {
            if first.key == second.key {
                report(&first, &second, blamed, verdict);
            }
        }
    }
}

/// Compares each key with each, and reports equal ones. Those ahead are scanned again for each window of keys.
#[cfg(feature = "fast")]
pub(crate) fn compare(mut members: Members<'_>, blamed: Blamed, verdict: &mut Verdict) {
    loop {
        // Most keys differ in their fingerprints.
        let mut window: [Option<(u32, Member<'_>)>; WINDOW] = [None; WINDOW];
        let mut held: usize = 0;
        let mut ahead = members;
        while let Some(second) = ahead.next() {
            let print = fingerprint(second.key);
            for (first_print, first) in window.iter().flatten() {
                if *first_print == print && first.key == second.key {
                    report(first, &second, blamed, verdict);
                }
            }
            if let Some(place) = window.get_mut(held) {
                *place = Some((print, second));
                held = held.wrapping_add(1);
                members = ahead;
            }
        }
        if held < WINDOW {
            return;
        }
    }
}

/// How many keys are compared with all others at one reading; a power of two.
const WINDOW: usize = 16;

/// How many bytes are read again to compare the keys of an object with so many keys and bytes. The small build reads as much
/// for each key, and counts alike.
pub(crate) fn reread_bytes(keys: u32, bytes: u32) -> u64 {
    let mut reread = u64::from(bytes);
    let readings = u64::from(keys >> WINDOW.trailing_zeros());
    if multiply(&mut reread, readings, 0) { reread } else { u64::MAX }
}

#[cold]
fn report(first: &Member<'_>, second: &Member<'_>, blamed: Blamed, verdict: &mut Verdict) {
    verdict.duplicate(first.key_at, second.key_at, name_span(second.key_at, second.key), blamed);
}

/// Merges ascending runs of keys, which begin at the places `starts`, and reports equal ones.
pub(crate) fn merge_runs(text: &[u8], starts: &[u32], verdict: &mut Verdict) {
    let mut runs: [Option<(Member<'_>, Members<'_>)>; NAME_RUNS_MAX] = [const { None }; NAME_RUNS_MAX];
    for (run, &start) in runs.iter_mut().zip(starts) {
        let mut members = Members::from_key(text, start);
        *run = members.next().map(|member| (member, members));
    }
    let mut last: Option<Member<'_>> = None;
    loop {
        let ends = starts.iter().skip(1).copied().chain([u32::MAX]);
        let mut least: Option<(&mut Option<(Member<'_>, Members<'_>)>, u32)> = None;
        for (run, end) in runs.iter_mut().zip(ends) {
            let Some((member, _)) = run else { continue };
            let key = member.key;
            if least.as_ref().is_none_or(|(least, _)| least.as_ref().is_none_or(|(least, _)| key < least.key))
            {
                least = Some((run, end));
            }
        }
        let Some((run, end)) = least else { return };
        let Some((member, members)) = run else { return };
        match &last {
            Some(first) if first.key == member.key => report(first, member, Blamed::Key, verdict),
            _ => last = Some(*member),
        }
        let next =
            members.find(|member| !member.key.is(b"__metadata__")).filter(|member| member.key_at < end);
        match next {
            Some(next) => *member = next,
            None => *run = None,
        }
    }
}
