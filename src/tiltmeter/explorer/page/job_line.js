// Work that takes long: started, watched and cancelled from one line of the page.
import { make } from "./elements.js";
import { ask } from "./server_calls.js";

const WATCH = 250;

export class JobLine {
  // `buttons` gives those that start work: one job at a time, so they wait meanwhile, and the line says why.
  constructor(buttons = () => []) {
    this.buttons = buttons;
    this.reason = make("span", { class: "small hidden", id: "job-reason" }, "One job at a time: wait for it, or cancel it.");
    this.text = make("span", { role: "status", "aria-live": "polite", id: "job" });
    this.bar = make("progress", { class: "hidden", "aria-label": "Progress" });
    this.stop = make("button", { type: "button", class: "hidden", onclick: () => this.cancel() }, "Cancel");
    this.element = make("div", { class: "row job" }, this.text, this.bar, this.stop, this.reason);
    this.open = true;
    this.number = null;
    this.held = [];
  }

  get busy() {
    return this.number !== null;
  }

  say(...parts) {
    this.text.replaceChildren(...parts);
  }

  // Returns the finished job; `hear` is called with it meanwhile and returns what to say.
  async run(kind, settings, hear) {
    this.hold();
    try {
      let job = await ask("/api/jobs", {}, { slot: "start job", body: { kind, settings } });
      this.number = job.number;
      this.show(true);
      while (this.open && job.state === "running") {
        const told = await hear(job);
        this.say(told.text);
        if (told.share === undefined) this.bar.removeAttribute("value");
        else this.bar.value = told.share;
        await new Promise((done) => setTimeout(done, WATCH));
        job = (await ask("/api/jobs", {}, { slot: "poll jobs" })).find((one) => one.number === job.number) ?? { ...job, state: "forgotten" };
      }
      return job;
    } finally {
      this.number = null;
      this.show(false);
      this.release();
    }
  }

  hold() {
    this.held = [...this.buttons()].filter((button) => !button.disabled);
    for (const button of this.held) {
      button.disabled = true;
      button.setAttribute("aria-describedby", this.reason.id);
    }
  }

  release() {
    for (const button of this.held) {
      button.disabled = false;
      button.removeAttribute("aria-describedby");
    }
  }

  show(on) {
    this.bar.classList.toggle("hidden", !on);
    this.stop.classList.toggle("hidden", !on);
    this.reason.classList.toggle("hidden", !on);
  }

  cancel() {
    return ask("/api/cancel", {}, { slot: "cancel job", body: { number: this.number } });
  }
}
