//! The looks that all pictures share, as classes: light by default, dark where the reader has it so.

/// The style of the pictures. No custom properties, so that plain SVG renderers show it too.
pub(super) const STYLE: &str = "
.r-chart{font-family:ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}
.r-chart text{font-variant-numeric:tabular-nums}
.r-paper{fill:#ffffff;stroke:#e2e6ec}
.r-title{font-size:20px;font-weight:650;fill:#18202b}
.r-name{font-size:15px;font-weight:650;fill:#18202b}
.r-sub{font-size:13px;fill:#566173}
.r-head{font-size:11.5px;fill:#7a8494}
.r-text{font-size:12.5px;fill:#29323f}
.r-soft{font-size:12.5px;fill:#7a8494}
.r-tick{font-size:11px;fill:#7a8494}
.r-alarm{font-size:12.5px;font-weight:650;fill:#c2410c}
.r-fine{font-size:12.5px;font-weight:650;fill:#15803d}
.r-grid{stroke:#e9edf2;stroke-width:1}
.r-base{stroke:#c3cad4;stroke-width:1}
.r-stripe{fill:#f6f8fa}
.r-band{fill:#3b82f6;fill-opacity:.3}
.r-band-edge{fill:none;stroke:#3b82f6;stroke-width:1.2;stroke-opacity:.75}
.r-mean{fill:#1d4ed8;stroke:#ffffff;stroke-width:1.5}
.r-path{fill:none;stroke:#1d4ed8;stroke-width:1.6;stroke-linejoin:round;stroke-opacity:.55}
.r-pile{fill:#ea580c}
.r-limit{stroke:#ea580c;stroke-width:1.4;stroke-dasharray:5 4}
.r-limit-label{font-size:11.5px;font-weight:650;fill:#c2410c}
.r-outage{fill:#dc2626;fill-opacity:.07}
.r-outage-edge{stroke:#dc2626;stroke-opacity:.45;stroke-width:1}
.r-outage-label{font-size:11.5px;fill:#b91c1c}
.r-tries{fill:#3b82f6;fill-opacity:.28}
.r-tries-line{fill:none;stroke:#2563eb;stroke-width:1.3;stroke-linejoin:round}
.r-served{fill:#16a34a;fill-opacity:.55}
.r-mark{fill:#1d4ed8;stroke:#ffffff;stroke-width:1.5}
.r-tag{font-size:12px;font-weight:600;fill:#29323f}
.r-tag,.r-limit-label{paint-order:stroke;stroke:#ffffff;stroke-width:3.5px;stroke-linejoin:round}
.r-step{stroke-width:1.4}
.r-step-waiting{fill:#f6f8fa;stroke:#c3cad4;stroke-dasharray:4 3}
.r-step-running{fill:#dbeafe;stroke:#2563eb}
.r-step-retrying{fill:#ffedd5;stroke:#ea580c}
.r-step-completed{fill:#dcfce7;stroke:#16a34a}
.r-step-failed{fill:#fee2e2;stroke:#dc2626}
.r-step-cancelled{fill:#eef0f3;stroke:#7a8494}
.r-step~text{stroke:none}
.r-edge{fill:none;stroke:#9aa4b2;stroke-width:1.4;stroke-linejoin:round}
.r-arrow{fill:#9aa4b2}
.r-around{font-size:12.5px;fill:#1d4ed8}
.r-edge-failure{fill:none;stroke:#ea580c;stroke-width:1.4;stroke-dasharray:5 3;stroke-linejoin:round}
.r-arrow-failure{fill:#ea580c}
@media (prefers-color-scheme:dark){
.r-paper{fill:#11161d;stroke:#2a323d}
.r-title,.r-name{fill:#eef2f7}
.r-sub{fill:#a6b0be}
.r-head,.r-soft,.r-tick{fill:#8b96a6}
.r-text,.r-tag{fill:#d5dce6}
.r-tag,.r-limit-label{stroke:#11161d}
.r-alarm,.r-limit-label{fill:#fb923c}
.r-fine{fill:#4ade80}
.r-grid{stroke:#222a35}
.r-base{stroke:#3d4856}
.r-stripe{fill:#161c25}
.r-band{fill:#60a5fa;fill-opacity:.32}
.r-band-edge{stroke:#60a5fa}
.r-mean,.r-mark{fill:#bfdbfe;stroke:#11161d}
.r-path{stroke:#93c5fd}
.r-pile{fill:#fb923c}
.r-limit{stroke:#fb923c}
.r-outage{fill:#f87171;fill-opacity:.1}
.r-outage-edge{stroke:#f87171}
.r-outage-label{fill:#fca5a5}
.r-tries{fill:#60a5fa;fill-opacity:.3}
.r-tries-line{stroke:#60a5fa}
.r-served{fill:#22c55e;fill-opacity:.6}
.r-step-waiting{fill:#161c25;stroke:#3d4856}
.r-step-running{fill:#172554;stroke:#60a5fa}
.r-step-retrying{fill:#431407;stroke:#fb923c}
.r-step-completed{fill:#052e16;stroke:#22c55e}
.r-step-failed{fill:#450a0a;stroke:#f87171}
.r-step-cancelled{fill:#1b222c;stroke:#8b96a6}
.r-edge{stroke:#566173}
.r-arrow{fill:#566173}
.r-around{fill:#93c5fd}
.r-edge-failure{stroke:#fb923c}
.r-arrow-failure{fill:#fb923c}
}
";
