package scheduler

// A bag is an unordered set whose elements know their place in it, so that one
// leaves in constant time, without a map. One goroutine at a time.
type bag[E placed] struct {
	items []E // Invariant: *items[i].place() == i
}

// placed is an element that keeps its place in a bag.
type placed interface{ place() *int }

func (b *bag[E]) add(e E) {
	*e.place() = len(b.items)
	b.items = append(b.items, e)
}

func (b *bag[E]) remove(e E) {
	i, last := *e.place(), len(b.items)-1
	b.items[i] = b.items[last]
	*b.items[i].place() = i
	var none E
	b.items[last] = none
	b.items = b.items[:last]
}

func (b *bag[E]) len() int { return len(b.items) }

func (r *run) place() *int     { return &r.inRuns }
func (n *nodeRun) place() *int { return &n.inActive }
