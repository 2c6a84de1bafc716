package peers

import (
	"context"
	"fmt"
	"math"
	"strconv"
)

// itemPrefix is what the keys of items begin with.
const itemPrefix = "item:"

// itemFields are the hash fields of an Item, in the order of its fields.
var itemFields = []string{"likes", "views", "c_ts", "author_id", "price", "quality", "title", "premium"}

// Item is a hash of eight fields, in the form in which a handwritten service keeps it.
type Item struct {
	Likes, Views, At, AuthorID int64
	Price, Quality             float64
	Title                      string
	Premium                    bool
	// Known has bit i set if field i exists and parsed. The other fields are zero.
	Known uint8
}

// ItemReader reads items through rueidis: one HMGET for each id, all in one pipeline. Any goroutine.
type ItemReader struct {
	store   Store
	batches batches
}

// OpenItemReader connects to the server at addr, "host:port".
func OpenItemReader(addr string, cfg RueidisConfig) (*ItemReader, error) {
	store, err := OpenRueidis(addr, cfg)
	if err != nil {
		return nil, err
	}
	return &ItemReader{store: store}, nil
}

// Close ends the connections.
func (r *ItemReader) Close() { r.store.Close() }

// Traffic counts the traffic with Redis so far.
func (r *ItemReader) Traffic() Traffic { return r.store.Traffic() }

// Read returns the items of these ids, in their order. A hash that does not exist is an Item without
// known fields.
func (r *ItemReader) Read(ctx context.Context, ids []int64) ([]Item, error) {
	b := r.batches.get()
	defer r.batches.put(b)
	for _, id := range ids {
		b.addFields(itemPrefix, id, itemFields)
	}
	r.store.Read(ctx, b)
	items := make([]Item, len(ids))
	for i := range items {
		fields, err := b.Reply(i)
		if err == nil && len(fields) != len(itemFields) {
			err = fmt.Errorf("%d values", len(fields))
		}
		if err != nil {
			return nil, fmt.Errorf("%s%d: %w", itemPrefix, ids[i], err)
		}
		items[i].decode(fields)
	}
	return items, nil
}

// decode fills in the fields that exist and parse.
func (item *Item) decode(fields []Text) {
	for i, field := range fields {
		if field.Known && item.set(i, field.Value) {
			item.Known |= 1 << i
		}
	}
}

func (item *Item) set(field int, text string) bool {
	var err error
	switch field {
	case 0:
		item.Likes, err = strconv.ParseInt(text, 10, 64)
	case 1:
		item.Views, err = strconv.ParseInt(text, 10, 64)
	case 2:
		item.At, err = strconv.ParseInt(text, 10, 64)
	case 3:
		item.AuthorID, err = strconv.ParseInt(text, 10, 64)
	case 4:
		item.Price, err = parseFinite(text)
	case 5:
		item.Quality, err = parseFinite(text)
	case 6:
		item.Title = text
	case 7:
		item.Premium, err = strconv.ParseBool(text)
	}
	return err == nil
}

func parseFinite(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, strconv.ErrSyntax
	}
	return f, nil
}
