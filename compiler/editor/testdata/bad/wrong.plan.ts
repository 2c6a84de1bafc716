import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "wrong",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default });
    ctx.viewer({ endpoint: EP.redis.redis_defualt }); // wrong: unknown endpoint
    ctx.viewer({ endpoint: EP.http.http_api }); // wrong: not a Redis
    ctx.viewer({}); // wrong: endpoint is missing
    ctx.viewer(); // wrong: options are missing
    ctx.follow({ endpoint: EP.redis.redis_default }); // wrong: not a source
    v.viewer({ endpoint: EP.redis.redis_default }); // wrong: a source
    v.folow({ endpoint: EP.redis.redis_default }); // wrong: unknown method
    v.follow({ endpoint: EP.redis.redis_default, fanout: "10" }); // wrong: text where a number belongs
    v.follow({ endpoint: EP.redis.redis_default, fanOut: 10 }); // wrong: unknown option
    v.follow({ endpoint: EP.redis.redis_default, fanout: P.weight }); // wrong: not known when it compiles
    v.follow({ endpoint: "ep_0001" }); // wrong: a text where an endpoint belongs
    v.vm({ outKey: Key.id, expr: 1 }); // wrong: id cannot be written
    v.vm({ outKey: Key.country, expr: 1 }); // wrong: not a float key
    v.vm({ outKey: Key.score * 2, expr: 1 }); // wrong: not a key
    v.vm({ outKey: 2002, expr: 1 }); // wrong: an id where a key belongs
    v.vm({ outKey: Key.scor, expr: 1 }); // wrong: unknown key
    v.vm({ outKey: Key.score }); // wrong: expr is missing
    v.vm({ outKey: Key.score, expr: "x" }); // wrong: text where a number belongs
    v.vm({ outKey: Key.score, expr: Key.country }); // wrong: a string key
    v.vm({ outKey: Key.score, expr: Key.country * 2 }); // wrong: arithmetic on a string key
    v.vm({ outKey: Key.score, expr: Key.id + "x" }); // wrong: a text
    v.vm({ outKey: Key.score, expr: P.weigth }); // wrong: unknown parameter
    v.vm({ outKey: Key.score, expr: Key.features_esr + 1 }); // wrong: a feature bundle
    v.vm({ outKey: Key.score, expr: Key.id > 5 }); // wrong: a condition where a number belongs
    v.vm({ outKey: Key.score, expr: coalesce(P.blocklist_regex, 1) }); // wrong: a text
    v.vm({ outKey: Key.score, expr: E.key(Key.features_lsr) }); // wrong: a feature bundle
    v.vm({ outKey: Key.score, expr: E.add(E.key(Key.country), 1) }); // wrong: a string key
    v.filter({ pred: Key.score }); // wrong: a number where a condition belongs
    v.filter({ pred: Key.score > 1 && Key.id }); // wrong: a number where a condition belongs
    v.filter({ pred: Key.country == 5 }); // wrong: a string key and a number
    v.filter({ pred: Key.id == "x" }); // wrong: a numeric key and a text
    v.filter({ pred: Key.country.in([1]) }); // wrong: a list of numbers
    v.filter({ pred: Key.id.in(["a"]) }); // wrong: a list of texts
    v.filter({ pred: regex(Key.id, "x") }); // wrong: a numeric key
    v.filter({ pred: regex(Key.country, 5) }); // wrong: a number where a pattern belongs
    v.filter({ pred: regex(Key.country, "x", "g") }); // wrong: unknown flag
    v.filter({ pred: Pred.cmp("=", Key.id, 5) }); // wrong: unknown comparison
    v.filter({ pred: Pred.cmp(">", Key.country, 5) }); // wrong: a string key
    v.vm({ outKey: Key.score, expr: Math.max(Key.country, 1) }); // wrong: a string key
    v.vm({ outKey: Key.score, expr: clamp(Key.score, 0) }); // wrong: an operand is missing
    v.vm({ outKey: Key.score, expr: decay(age(Key.created_at)) }); // wrong: the half life is missing
    v.vm({ outKey: Key.score, expr: now(1) }); // wrong: too many operands
    v.vm({ outKey: Key.score, expr: Key.likes > 3 ? "a" : 1 }); // wrong: a text
    v.vm({ outKey: Key.score, expr: Key.tags + 1 }); // wrong: arithmetic on a set
    v.vm({ outKey: Key.score, expr: E.if(Key.score, 1, 2) }); // wrong: a number where a condition belongs
    v.filter({ pred: Key.tags.includes(1) }); // wrong: a number in a set of texts
    v.filter({ pred: Key.tags == "news" }); // wrong: a set and a text
    v.filter({ pred: P.seen.includes(Key.country) }); // wrong: a text in a list of numbers
    v.filter({ pred: Key.id.in(P.topics) }); // wrong: a number in a list of texts
    v.filter({ pred: Key.country.in(P.seen) }); // wrong: a text in a list of numbers
    v.filter({ pred: Key.country < Key.tags }); // wrong: a text and a set
    v.filter({ pred: P.lang }); // wrong: a text where a condition belongs
    v.sort({ key: Key.score, order: "down" }); // wrong: neither asc nor desc
    v.sort({ order: "desc" }); // wrong: the key is missing
    v.sort({ key: Key.features_esr }); // wrong: a feature bundle
    v.sort({ key: Key.score, by: Key.score }); // wrong: the key twice
    v.take({ count: "10" }); // wrong: text where a number belongs
    v.take({ count: Key.id }); // wrong: not known when it compiles
    v.take({ count: 1, trace: 5 }); // wrong: a number where a text belongs
    v.take({ count: 1, scheduling: { inline: "yes" } }); // wrong: not true or false
    v.concat({ rhs: "n1" }); // wrong: a text where rows belong
    v.concat({ rhs: ctx }); // wrong: the context
    return v;
  },
});
