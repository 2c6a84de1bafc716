package compiler_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rankd/rankd/compiler"
)

func TestMain(m *testing.M) {
	compiler.Main() // a child of these tests is this binary
	goleak.VerifyTestMain(m)
}
