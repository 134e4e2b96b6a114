use super::*;

fn card(name: &str, lines: Vec<Line>, next: Option<usize>) -> Card {
    Card { name: name.to_owned(), action: "Call", look: Look::Call, lines, next }
}

fn catch(text: &str, to: usize) -> Line {
    Line { text: text.to_owned(), mark: Mark::Failure, to: Some(to) }
}

fn chart(panels: Vec<Panel>) -> Chart {
    Chart { title: "a & b".to_owned(), subtitle: "2 steps".to_owned(), panels }
}

fn panel(cards: Vec<Card>) -> Panel {
    Panel { name: "the flow".to_owned(), around: vec!["Timeout <PT1H>".to_owned()], entry: 0, cards }
}

fn saga() -> Chart {
    chart(vec![panel(vec![
        card("book", vec![Line::new(Mark::Around, "Retry"), catch("catch Hotel.*", 2)], Some(1)),
        Card { look: Look::Success, action: "Return", ..card("done", vec![], None) },
        card("undo", vec![catch("catch *", 0)], Some(3)),
        Card { look: Look::Failure, action: "Raise", ..card("give-up", vec![Line::new(Mark::Plain, "A.B")], None) },
    ])])
}

#[test]
fn a_chart_for_the_terminal() {
    let expected = "\
a & b
2 steps

the flow
  Timeout <PT1H>
┌─ book ──────────────────────── Call ─┐◀───╮
│ Retry                                │    │
│                        catch Hotel.* ├──╮ │
└───────────────────┬──────────────────┘  │ │
                    ▼                     │ │
┌─ done ────────────────────── Return ─┐  │ │
└──────────────────────────────────────┘  │ │
                                          │ │
┌─ undo ──────────────────────── Call ─┐◀─╯ │
│                              catch * ├────╯
└───────────────────┬──────────────────┘
                    ▼
┌─ give-up ──────────────────── Raise ─┐
│ A.B                                  │
└──────────────────────────────────────┘
";
    assert_eq!(flow_text(&saga(), 45), expected);
}

#[test]
fn every_text_of_a_picture_is_escaped() {
    let nasty = "<script>&\"'</script>\u{1b}\u{202e}";
    let line = |mark| Line { text: nasty.to_owned(), mark, to: Some(0) };
    let cards = vec![card(nasty, vec![line(Mark::Plain), line(Mark::Failure), line(Mark::Around)], Some(7))];
    let panel = Panel { name: nasty.to_owned(), around: vec![nasty.to_owned()], entry: 0, cards };
    let chart = Chart { title: nasty.to_owned(), subtitle: nasty.to_owned(), panels: vec![panel] };
    let picture = flow_svg(&chart);
    assert!(picture.contains("&lt;script&gt;&amp;") && !picture.contains("<script"), "{picture}");
    assert!(!picture.contains('\u{1b}'), "{picture}");
    assert_eq!(picture.matches("<g>").count(), picture.matches("</g>").count());
}

#[test]
fn what_is_long_deep_or_wide_is_cut_and_counted() {
    let long = "x".repeat(500);
    let many = |count: usize| -> Vec<Card> {
        (0..count).map(|at| card(&long, vec![catch(&long, (at * 31) % count)], Some((at + 1) % count))).collect()
    };
    let wide: Vec<Line> = (0..1000).map(|_| catch(&long, 0)).collect();
    let panels = vec![panel(many(10_000)), panel(vec![card(&long, wide, None)])];
    let picture = flow_svg(&chart(panels.clone()));
    assert!(picture.contains(">9801 more steps are not drawn<"), "{}", &picture[..2000]);
    assert!(picture.len() < 1_000_000, "{}", picture.len());
    assert!(flow_text(&chart(panels), 80).ends_with("\n9801 more steps are not drawn\n"));
    let picture = flow_svg(&chart((0..500).map(|_| panel(many(2))).collect()));
    assert!(picture.contains(&format!(">{} more steps are not drawn<", 1000 - 2 * MAX_PANELS)));
    let wide: Vec<Line> = (0..1000).map(|_| catch(&long, 0)).collect();
    let picture = flow_svg(&chart(vec![panel(vec![card("w", wide, None)])]));
    assert!(picture.contains(&format!(">… and {} more<", 1001 - MAX_LINES)), "{picture}");
}

#[test]
fn charts_without_steps_are_drawn() {
    for panels in [vec![], vec![panel(vec![])]] {
        assert!(flow_svg(&chart(panels.clone())).ends_with("</svg>\n"));
        assert!(!flow_text(&chart(panels), 80).is_empty());
    }
}
