package builtin

import "github.com/rankd/rankd/resp"

// replyShape says where ids, or values, stand in a reply.
type replyShape uint8

const (
	statedReply    replyShape = iota // as the plan states
	idsReply                         // [id, …]
	idsScoresReply                   // [id, score, …], or [[id, score], …]
	mapReply                         // [name, value, …]
	scalarReply                      // a text, an integer, or nothing
	streamReply                      // [[entry, [name, value, …]], …]
	searchReply                      // [total, key, [name, value, …], …]; a score may follow each key, and fields may be left out
	hybridReply                      // ["results", [[name, value, …], …], "warnings", [text, …], …], in any order
)

var replyNames = [...]string{statedReply: "as `reply` says", idsReply: "ids", idsScoresReply: "ids_scores", mapReply: "map", scalarReply: "scalar", streamReply: "stream",
	searchReply: "search", hybridReply: "search"}

// A replyForm says how the entries of a reply are read. Immutable once built; any goroutine.
type replyForm struct {
	shape        replyShape
	scores, bare bool   // of a searchReply: scores follow the keys; no fields do
	id, score    string // the fields of a document, or of an entry of a stream, that have them; "": none
	prefix       string // of each id
}

// fits reports whether a reply has the shape.
func (f *replyForm) fits(reply resp.Reply) bool {
	if kind := reply.Kind(); f.shape == scalarReply {
		return kind == resp.Bulk || kind == resp.Integer || kind == resp.Null
	}
	_, fits := f.entries(reply, nil)
	return fits
}

// entries calls take for each entry of a reply, with its id and its score; nil stands for none. It returns the number of entries, and
// whether the reply has the shape: if not, take has got those before the fault. A nil take takes none.
func (f *replyForm) entries(reply resp.Reply, take func(id, score []byte)) (n int, fits bool) {
	width, score, fields := 1, -1, -1 // the elements of an entry, and where its score and its fields are among them
	switch f.shape {
	case idsScoresReply, mapReply:
		width, score = 2, 1
	case streamReply:
		width, fields = 2, 1
	case hybridReply:
		fields = 0
		reply, _ = reply.Field("results")
	case searchReply:
		if f.scores {
			width, score = 2, 1
		}
		if !f.bare {
			width, fields = width+1, width
		}
	}
	if reply.Kind() != resp.Array {
		return 0, false
	}
	var entry [3]resp.Reply
	at := 0
	if f.shape == searchReply {
		at = -1 // The total comes first.
	}
	add := func(e resp.Reply) (fits bool) {
		switch kind := e.Kind(); at {
		case -1:
			at = 0
			return kind == resp.Integer
		case fields:
			fits = kind == resp.Array || kind == resp.Null && f.shape == searchReply
		default:
			fits = kind != resp.Array && kind != resp.Error
		}
		entry[at] = e
		if at++; at < width || !fits {
			return fits
		}
		if at, n = 0, n+1; take == nil {
			return true
		}
		id, value := entry[0].Bytes(), []byte(nil)
		if score > 0 {
			value = entry[score].Bytes()
		} else if fields >= 0 {
			value = fieldOf(entry[fields], f.score)
		}
		if fields >= 0 && f.id != "" {
			id = fieldOf(entry[fields], f.id)
		}
		take(id, value)
		return true
	}
	nested := f.shape == streamReply || f.shape == idsScoresReply && reply.Len() > 0 && reply.At(0).Kind() == resp.Array
	for e := range reply.All() {
		if !nested {
			if !add(e) {
				return n, false
			}
			continue
		}
		if e.Kind() != resp.Array || e.Len() != width {
			return n, false
		}
		for part := range e.All() {
			if !add(part) {
				return n, false
			}
		}
	}
	return n, at == 0
}

// fieldOf returns the value of a field, or nil.
func fieldOf(fields resp.Reply, name string) []byte {
	if value, ok := fields.Field(name); ok && name != "" {
		return value.Bytes()
	}
	return nil
}
