package scheduler

// A bag is an unordered set. Its elements know their index, so that one leaves in constant
// time, without a map. One goroutine at a time.
type bag[E indexed] struct {
	items []E // Invariant: *items[i].bagIndex() == i
}

// indexed is an element that keeps its index in a bag.
type indexed interface{ bagIndex() *int }

func (b *bag[E]) add(e E) {
	*e.bagIndex() = len(b.items)
	b.items = append(b.items, e)
}

func (b *bag[E]) remove(e E) {
	i, last := *e.bagIndex(), len(b.items)-1
	b.items[i] = b.items[last]
	*b.items[i].bagIndex() = i
	var none E
	b.items[last] = none
	b.items = b.items[:last]
}

func (b *bag[E]) len() int { return len(b.items) }
