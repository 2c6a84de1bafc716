package rowset

// With returns a batch with columns added. A column takes the place of one of the same key, whatever the
// type of that was. The batch shares all other columns with b. Each column has b.Len() rows and a key
// of its own; they may come in any order. The slices belong to the batch from now on.
func With(b *Batch, columns Columns) *Batch {
	var added Batch
	added.own(columns)
	return b.with(&added)
}

// with is With for the columns of another batch.
func (b *Batch) with(added *Batch) *Batch {
	out := &Batch{
		IDs:     b.IDs,
		Floats:  with(b.Floats, added.Floats, added),
		Strings: with(b.Strings, added.Strings, added),
	}
	if b.rare == nil && added.rare == nil {
		return out
	}
	old, more := b.Columns(), added.Columns()
	out.rare = &rareColumns{with(old.Ints, more.Ints, added), with(old.Bools, more.Bools, added), with(old.Sets, more.Sets, added)}
	return out
}

// with returns the old columns of one type whose keys are not among all that are added, and the added ones of
// that type. It returns old or added itself if the other changes nothing.
func with[C column](old, added []C, all *Batch) []C {
	kept := 0
	for i := range old {
		if all.TypeOf(old[i].key()) == 0 {
			kept++
		}
	}
	switch {
	case kept == 0:
		return added
	case kept == len(old) && len(added) == 0:
		return old
	}
	columns := make([]C, 0, kept+len(added))
	for i := range old {
		if all.TypeOf(old[i].key()) == 0 {
			columns = append(columns, old[i])
		}
	}
	columns = append(columns, added...)
	sortByKey(columns)
	return columns
}
