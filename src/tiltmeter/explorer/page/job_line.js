// Work that takes long: started, watched and cancelled from one line of the page.
import { make } from "./elements.js";
import { ask } from "./server_calls.js";

const WATCH = 250;

export class JobLine {
  constructor() {
    this.text = make("span", { role: "status", "aria-live": "polite", id: "job" });
    this.bar = make("progress", { class: "hidden", "aria-label": "Progress" });
    this.stop = make("button", { type: "button", class: "hidden", onclick: () => this.cancel() }, "Cancel");
    this.element = make("div", { class: "row job" }, this.text, this.bar, this.stop);
    this.open = true;
    this.number = null;
  }

  get busy() {
    return this.number !== null;
  }

  say(...parts) {
    this.text.replaceChildren(...parts);
  }

  // Returns the finished job; `hear` is called with it meanwhile and returns what to say.
  async run(kind, settings, hear) {
    let job = await ask("/api/jobs", {}, { slot: "start job", body: { kind, settings } });
    this.number = job.number;
    this.show(true);
    try {
      while (this.open && job.state === "running") {
        const told = await hear(job);
        this.say(told.text);
        if (told.share === undefined) this.bar.removeAttribute("value");
        else this.bar.value = told.share;
        await new Promise((done) => setTimeout(done, WATCH));
        job = (await ask("/api/jobs", {}, { slot: "poll jobs" })).find((one) => one.number === job.number) ?? { ...job, state: "forgotten" };
      }
    } finally {
      this.number = null;
      this.show(false);
    }
    return job;
  }

  show(on) {
    this.bar.classList.toggle("hidden", !on);
    this.stop.classList.toggle("hidden", !on);
  }

  cancel() {
    return ask("/api/cancel", {}, { slot: "cancel job", body: { number: this.number } });
  }
}
