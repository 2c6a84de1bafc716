import { definePlan, E, Pred } from "@ranking-dsl/runtime";

// Every operator of typed expressions, as plans write it.
export default definePlan({
  name: "typed",
  build: (ctx) => {
    const rows = ctx.everything();
    const hours = 3600;
    const fresh = decay(age(Key.created_at), 6 * hours);
    const quality = Math.min(Key.likes / Math.max(Key.score, 1), 10) ** 2 + Math.pow(Key.score, 0.5) - Math.sqrt(Key.likes);
    const shape = Math.exp(-Key.score) + Math.log(1 + Key.likes) + Math.abs(Key.score) + Math.floor(Key.score) + Math.ceil(Key.score);
    const boosted = Key.pinned ? 2 : P.premium && Key.likes > 3 ? 1.5 : 1;
    return rows
      .filter({ pred: Key.country == P.lang || Key.country === Key.title || P.lang != "en" || Key.title != null })
      .filter({ pred: !P.seen.includes(Key.id) && !Key.id.in(P.seen) && Key.id.in([1, 9007199254740993n]) })
      .filter({ pred: Key.tags.includes("news") || Key.tags.includes(Key.country) || P.topics.includes(Key.country) || Key.tags == null })
      .filter({ pred: Key.pinned && Key.pinned == true && !P.premium })
      .filter({ pred: ["US", "CA"].includes(Key.country) && [1, 2].includes(Key.id) })
      .filter({ pred: Key.likes == Key.id || P.hour <= Key.likes || Pred.cmp("==", Key.id, 9007199254740993n) })
      .filter({ pred: Pred.cmp("!=", Key.country, Key.title) && Pred.isNull(Key.tags) && P.lang.in(["de", "en"]) })
      .filter({ pred: Key.likes > 3 ? Key.pinned == true : Key.score > 1 })
      .vm({ outKey: Key.score, expr: fresh * boosted + clamp(quality, 0, 100) + shape + (Key.id % 7) + now() })
      .vm({ outKey: Key.final_score, expr: E.if(Key.likes > 3, E.div(Key.score, 2), null) ?? E.min(Key.score, 1, P.hour) });
  },
});
