// Package list has lists that are threaded through their elements: an element leaves from anywhere in constant time, adding one
// allocates nothing, and an empty list holds no memory.
package list

// A Link is the place of an element of type E in a list. The element has one for each list that it may be in at the
// same time. The zero value is not in a list. One goroutine at a time, as its list.
type Link[E any] struct {
	of         *E // nil: in no list
	prev, next *Link[E]
}

// In reports whether the link is in a list.
func (l *Link[E]) In() bool { return l.of != nil }

// Next returns the element behind that of l in its list, nil behind the last.
func (l *Link[E]) Next() *E { return l.next.element() }

func (l *Link[E]) element() *E {
	if l == nil {
		return nil
	}
	return l.of
}

// A List is a FIFO of elements. The zero value is empty. One goroutine at a time.
type List[E any] struct {
	first, last *Link[E]
	len         int
}

// Push adds an element at the end, with one of its links, which must not be in a list.
func (l *List[E]) Push(e *E, link *Link[E]) {
	*link = Link[E]{of: e, prev: l.last}
	if l.last == nil {
		l.first = link
	} else {
		l.last.next = link
	}
	l.last = link
	l.len++
}

// Remove takes the element of a link out of the list. It must be in the list.
func (l *List[E]) Remove(link *Link[E]) {
	if link.prev == nil {
		l.first = link.next
	} else {
		link.prev.next = link.next
	}
	if link.next == nil {
		l.last = link.prev
	} else {
		link.next.prev = link.prev
	}
	*link = Link[E]{}
	l.len--
}

// First returns the oldest element, nil if there is none.
func (l *List[E]) First() *E { return l.first.element() }

// Last returns the newest element, nil if there is none.
func (l *List[E]) Last() *E { return l.last.element() }

// Len returns the number of elements.
func (l *List[E]) Len() int { return l.len }
