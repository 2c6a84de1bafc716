import { definePlan, E, Pred } from "@ranking-dsl/runtime";
import { boosted, fromHome } from "./helpers";

const high0 = () => Key.score > 0;

export default definePlan({
  name: "natural",
  build: (ctx) => {
    const users = ctx
      .viewer({ endpoint: EP.redis.redis_default, trace: "me" })
      .follow({ endpoint: EP.redis.redis_default, fanout: 10 * 2, timeoutMs: 50 })
      .filter({ pred: Key.country.in(["US", "CA"]) && !regex(Key.country, P.blocklist_regex, "i") });
    let scored = users.vm({ outKey: Key.score, expr: Key.id * coalesce(P.weight, 0.5) });
    for (let i = 1; i <= 3; i++) {
      scored = scored.vm({ outKey: Key.final_score, expr: Key.id * i - -Key.score + E.key(Key.id) * 2, trace: `round ${i}` });
    }
    const label = high0() ? `${lower(Key.country)}-${Key.id}` : Key.country + "!";
    scored = scored.vm({ outKey: Key.country, expr: label ?? "none" }).filter({ pred: length(Key.country) > 1 && lower(Key.country).in(["us", "ca"]) });
    const high = Key.score >= 0.5;
    return [
      boosted(scored).filter({ pred: high && fromHome() }).sort({ key: Key.score, order: "desc" }).take({ count: 10 }),
      scored
        .filter({ pred: (Key.score == Key.id || Key.score == P.weight || P.weight === P.esr_cutoff || Key.id != P.weight) && Key.id.in([1, 2, 3]) && true })
        .filter({ pred: Key.score == null || Key.final_score !== null || P.weight == null || coalesce(P.weight, null) == null })
        .filter({ pred: Pred.and(Pred.cmp("<", E.mul(E.key(Key.id), E.const(2)), Key.score), Pred.not(high)) })
        .filter({ pred: Pred.or(Pred.in(E.key(Key.country), ["US"]), Pred.in(Key.id, [5])) && Pred.isNull(Key.score) })
        .sort({ by: Key.country, scheduling: { inline: true, costEstimateUs: 5 } }),
      ctx.fixedSource().busyCpu({ busyWaitMs: 1 }),
      ctx.fixed_source({ rowCount: 3 }).sleep({ durationMs: 1, failAfterSleep: false }),
    ];
  },
});
