package expr

import "regexp/syntax"

// A compiledSize estimates the size of a compiled pattern, from above and within a factor
// of two. A program writes repeats out, so a text of 10 bytes may become 1000 instructions
// and more.
type compiledSize struct {
	instructions int // without programFrame
	runes        int // ends of the ranges of all classes; copies of a class share these
}

const (
	programFrame = 2 // instructions of every program: fail, match

	instructionBytes = 40
	runeBytes        = 4
)

func (s compiledSize) bytes() int { return s.instructions*instructionBytes + s.runes*runeBytes }

// sizeOf estimates the size of re without captures. It cannot overflow, because the
// parser refuses a pattern that compiles to more than 128 MiB.
func sizeOf(re *syntax.Regexp) (size compiledSize) {
	for _, sub := range re.Sub {
		s := sizeOf(sub)
		size.instructions += s.instructions
		size.runes += s.runes
	}
	switch re.Op {
	case syntax.OpLiteral:
		size.instructions = len(re.Rune)
		size.runes = len(re.Rune)
	case syntax.OpCharClass:
		size.instructions = 1
		size.runes = len(re.Rune)
	case syntax.OpCapture, syntax.OpConcat:
	case syntax.OpAlternate:
		size.instructions += len(re.Sub) - 1
	case syntax.OpStar:
		size.instructions += 2 // one more than usual if what repeats may be empty
	case syntax.OpPlus, syntax.OpQuest:
		size.instructions++
	case syntax.OpRepeat:
		once := size.instructions
		if re.Max < 0 { // xxx*
			size.instructions = max(1, re.Min)*once + 2
		} else { // xxx(x(x)?)?
			size.instructions = re.Min*once + (re.Max-re.Min)*(once+1)
		}
	}
	size.instructions = max(1, size.instructions)
	return size
}
