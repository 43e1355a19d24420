import { Empty } from "../components.js";
import { html } from "../vendor/htm-preact.js";

export default function View() {
  return html`<${Empty} title="Not there yet" />`;
}
