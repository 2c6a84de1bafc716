// Runs the programs of this folder, and prints what each does, as JSON.
import fs from "node:fs";
import { outcome } from "./show.mjs";

const here = new URL("./", import.meta.url);
const all = {};
for (const name of fs.readdirSync(here).sort()) {
  if (!/^\d{3}-/.test(name)) continue;
  let run;
  try {
    run = (await import(new URL(name.endsWith(".mjs") ? name : name + "/main.mjs", here))).default;
  } catch (e) {
    run = () => { throw e; };
  }
  all[name] = outcome(run);
}
console.log(JSON.stringify(all, null, 1));
