package peers

// parseID reads the id at the start of a list entry, as the engine does: an optional minus,
// then at least one ASCII digit. It ignores the rest of the entry. ok is false if the
// entry starts differently, or if the digits do not fit an int64. (strconv.ParseInt
// would refuse "12x" and accept "+1".)
func parseID[T string | []byte](entry T) (id int64, ok bool) {
	i, negative := 0, false
	if len(entry) > 0 && entry[0] == '-' {
		i, negative = 1, true
	}
	const limit = 1 << 63 // the magnitude of the smallest int64
	var n uint64
	first := i
	for ; i < len(entry) && '0' <= entry[i] && entry[i] <= '9'; i++ {
		digit := uint64(entry[i] - '0')
		if n > (limit-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	if i == first || n == limit && !negative {
		return 0, false
	}
	if negative {
		return int64(-n), true
	}
	return int64(n), true
}

// ids returns the ids in the replies to the commands from first up to end.
func (b *Batch) ids(first, end int) ([]int64, error) {
	total := 0
	for i := first; i < end; i++ {
		entries, err := b.Reply(i)
		if err != nil {
			return nil, err
		}
		total += len(entries)
	}
	ids := make([]int64, 0, total)
	for i := first; i < end; i++ {
		entries, _ := b.Reply(i)
		for _, entry := range entries {
			if id, ok := parseID(entry.Value); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}
