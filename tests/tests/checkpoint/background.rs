//! A save in the background is a save: its error reaches somebody, and leaving a program does not lose it.

use std::fs;

use super::*;
use safestep::checkpoint::BackgroundSaver;

fn begin(saver: &mut BackgroundSaver<OsDisk>, run: &Run) -> Result<Option<Saved>, Error> {
    run.with(|state| saver.begin(state, SaveOptions::default()))
}

#[test]
fn what_was_copied_is_saved_whatever_training_does_meanwhile() {
    let (_directory, root) = room();
    let mut saver = BackgroundSaver::new(OsDisk, &root);
    assert!(saver.wait().unwrap().is_none());
    for step in 1..=4 {
        let mut run = Run::at(step);
        let before = begin(&mut saver, &run).unwrap();
        assert_eq!(before.map(|saved| saved.name.step()), (step > 1).then(|| step - 1));
        run.model[0].bytes.fill(0xff);
    }
    assert_eq!(saver.wait().unwrap().unwrap().name.step(), 4);
    assert!(!saver.is_running() && saver.wait().unwrap().is_none());
    for step in 1..=4 {
        let checkpoint = safestep::checkpoint::load_step(&OsDisk, &root, step).unwrap();
        assert_eq!(Run::at(step).differs_from(&checkpoint), None);
    }
}

#[test]
fn an_error_reaches_whoever_asks_next() {
    let (_directory, root) = room();
    save_at(&root, 1).unwrap();
    let mut saver = BackgroundSaver::new(OsDisk, &root);
    begin(&mut saver, &Run::at(1)).unwrap();
    assert!(begin(&mut saver, &Run::at(2)).unwrap_err().to_string().contains("step-000001"));
    begin(&mut saver, &Run::at(1)).unwrap();
    assert!(saver.wait().is_err());
    begin(&mut saver, &Run::at(2)).unwrap();
    saver.wait().unwrap();
    assert_eq!(loaded(&root).name.step(), 2);
}

#[test]
fn dropping_waits() {
    let (_directory, root) = room();
    let mut saver = BackgroundSaver::new(OsDisk, &root);
    begin(&mut saver, &Run::at(5)).unwrap();
    drop(saver);
    assert_eq!(loaded(&root).name.step(), 5);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 2);
}
