package rowset

// dictScanMax is the largest dictionary that is scanned for a value. Scanning so few
// short strings is as fast as hashing one. Most batches have a handful of values, so
// they need no map.
const dictScanMax = 12

// A dictBuilder grows a Dict and finds the code of a value. One goroutine at a time.
type dictBuilder struct {
	dict  *Dict
	index map[string]int32 // nil while there are at most dictScanMax values
}

// newDict returns an empty dictionary. It is one allocation with its first values.
func newDict() *Dict {
	block := new(struct {
		dict  Dict
		first [4]string
	})
	block.dict.Values = block.first[:0]
	return &block.dict
}

// newDictBuilder starts from values, which are distinct. It shares them until the
// first new value.
func newDictBuilder(values []string) dictBuilder {
	b := dictBuilder{dict: &Dict{Values: values[:len(values):len(values)]}}
	if len(values) > dictScanMax {
		b.buildIndex()
	}
	return b
}

// internBytes is intern for bytes. It allocates only for a new value.
func (b *dictBuilder) internBytes(value []byte) int32 {
	if b.index != nil {
		if code, ok := b.index[string(value)]; ok {
			return code
		}
	} else {
		for code, s := range b.dict.Values {
			if s == string(value) {
				return int32(code)
			}
		}
	}
	return b.add(string(value))
}

// intern returns the code of a value, adding it if it is new.
func (b *dictBuilder) intern(value string) int32 {
	if b.index != nil {
		if code, ok := b.index[value]; ok {
			return code
		}
	} else {
		for code, s := range b.dict.Values {
			if s == value {
				return int32(code)
			}
		}
	}
	return b.add(value)
}

func (b *dictBuilder) add(value string) int32 {
	code := int32(len(b.dict.Values))
	b.dict.Values = append(b.dict.Values, value)
	switch {
	case b.index != nil:
		b.index[value] = code
	case len(b.dict.Values) > dictScanMax:
		b.buildIndex()
	}
	return code
}

func (b *dictBuilder) buildIndex() {
	b.index = make(map[string]int32, 2*len(b.dict.Values))
	for code, s := range b.dict.Values {
		b.index[s] = int32(code)
	}
}
