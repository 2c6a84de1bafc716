import { definePlan } from "@ranking-dsl/runtime";

const redis = EP.redis.feed;
const hour = 3600; // seconds
const day = 24 * hour;

// A post is good if many of those who saw it liked it. Each day halves its score, and a close author raises it.
const quality = (Key.likes + 2) / (Key.views + 50);
const score = quality * decay(age(Key.created_at), day) * (1 + coalesce(Key.closeness, 0)) + coalesce(Key.popular_rank, 0);

// Ranks posts for a user: of those whom the user follows, popular ones of the country, and ones like those that the user liked.
// The feed goes on without a source that fails, and the answer says so.
export default definePlan({
  name: "feed",
  build: (ctx) => {
    const inbox = ctx.candidates({ endpoint: redis, key: "inbox:{user}", limit: 100 });
    const popular = ctx
      .candidates({ endpoint: redis, key: "popular:{country}", kind: "sorted_set", limit: 100, score: Key.popularity, onError: "empty" })
      .normalize({ by: Key.popularity, outKey: Key.popular_rank, method: "reciprocal_rank" });
    const similar = ctx
      .candidates({ endpoint: redis, key: "liked:{user}", limit: 10, onError: "empty" })
      .candidates({ endpoint: redis, key: "similar:{id}", limit: 10, onError: "empty" });
    const friends = ctx.candidates({ endpoint: redis, key: "friends:{user}", kind: "sorted_set", score: Key.closeness, onError: "empty" });

    const posts = inbox
      .union({ with: [popular, similar], names: ["follow", "popular", "similar"], source: Key.source, rank: Key.source_rank })
      .dedupe({ sources: Key.source, keep: "max", column: Key.popular_rank })
      .exclude({ endpoint: redis, key: "seen:{user}", kind: "sorted_set", maxAge: 7 * day, failOpen: true })
      .lookup({
        endpoint: redis,
        key: "post:{id}",
        fields: [Key.title, Key.author_id, Key.author, Key.topic, Key.created_at, Key.likes, Key.views],
        missing: "drop",
      })
      .exclude({ context: "muted", by: Key.author })
      .join({ right: friends, on: Key.author_id, rightOn: Key.id, columns: [Key.closeness] });

    const ranked = posts
      .top({ expr: score, outKey: Key.score, count: 100 })
      .boost({
        score: Key.score,
        outKey: Key.final_score,
        mode: "all",
        rules: [
          { name: "chosen topic", pred: Key.topic.in(P.topics), expr: Key.final_score * 1.5 },
          { name: "two sources", pred: Key.source.includes("follow") && Key.source.includes("popular"), expr: Key.final_score * 1.2 },
        ],
      })
      .sort({ key: Key.final_score, order: "desc" })
      .diversify({ by: Key.author, window: 5 });

    // Two posts of authors whom the user follows, then one from elsewhere.
    const followed = Key.source.includes("follow");
    return ranked
      .filter({ pred: followed })
      .blend({ with: [ranked.filter({ pred: !followed })], names: ["follow", "discover"], pattern: ["follow", "follow", "discover"] })
      .take({ count: 20 });
  },
});
