package peers

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Article is a candidate of the plan articles. Immutable in an answer.
type Article struct {
	Title, Topic, Lang string
	Tags               string // separated by commas
	CreatedAt, Likes   int64
	Premium            bool
}

var (
	newestHundred = []string{"0", "99"}
	articleFields = []string{"title", "topic", "lang", "c_ts", "likes", "tags", "premium"}
)

// articles is examples/articles. It takes the inbox without articles that the request has seen.
// It ranks by likes that decay with age, and by what fits the page. It returns the best ten.
func (r *Ranker) articles(ctx context.Context, req Request) ([]Candidate, error) {
	const count, halfLife = 10, 12 * 3600
	now := req.Now
	if now == 0 {
		now = seconds(time.Now())
	}
	b := r.batches.get()
	defer r.batches.put(b)
	b.add("ZREVRANGE", "inbox:", req.UserID, newestHundred...)
	var ids []int64
	err := read(ctx, r.store, b, func(_ int, reply []Text) {
		ids = make([]int64, 0, len(reply))
		for _, entry := range reply {
			if id, ok := whole(entry); ok && !slices.Contains(req.Seen, id) {
				ids = append(ids, id)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	b.reset()
	for _, id := range ids {
		b.addFields("article:", id, articleFields)
	}
	rows, scores, kept := make([]Article, 0, len(ids)), make([]float64, 0, len(ids)), ids[:0]
	err = read(ctx, r.store, b, func(i int, reply []Text) {
		var a Article
		if !a.decode(reply) || a.Premium && !req.Subscriber {
			return
		}
		rows, kept = append(rows, a), append(kept, ids[i])
		popularity := math.Log(2+float64(a.Likes)) * decay(now-float64(a.CreatedAt), halfLife)
		scores = append(scores, popularity*a.fit(&req))
	})
	if err == nil {
		err = finite(scores)
	}
	if err != nil {
		return nil, err
	}
	best := topK(scores, count)
	answer := make([]Candidate, len(best))
	for i, s := range best {
		article := rows[s.row] // a copy, so that the answer does not keep other rows alive
		answer[i] = Candidate{ID: kept[s.row], Score: s.score, Article: &article}
	}
	return answer, nil
}

// fit is the factor for the page, the reader and the time of day.
func (a *Article) fit(req *Request) float64 {
	fit := 1.0
	if req.Topic != nil && a.Topic == *req.Topic {
		fit = 2
	}
	if req.Lang != nil && a.Lang == *req.Lang {
		fit *= 1.5
	}
	if req.Hour != nil && *req.Hour >= 18 && hasTag(a.Tags, "long-read") {
		fit *= 1.3
	}
	return fit
}

// hasTag reports whether one of the tags between commas is tag.
func hasTag(tags, tag string) bool {
	for tags != "" {
		var first string
		if first, tags, _ = strings.Cut(tags, ","); first == tag {
			return true
		}
	}
	return false
}

// decode reads the fields. It reports whether there is a title. An article without its creation
// time or its premium mark does not count as one.
func (a *Article) decode(fields []Text) (ok bool) {
	if len(fields) != len(articleFields) || !fields[0].Known {
		return false
	}
	a.Title, a.Topic, a.Lang, a.Tags = fields[0].Value, fields[1].Value, fields[2].Value, fields[5].Value
	if a.CreatedAt, ok = whole(fields[3]); !ok {
		return false
	}
	a.Likes, _ = whole(fields[4])
	var err error
	a.Premium, err = strconv.ParseBool(fields[6].Value)
	return err == nil
}
