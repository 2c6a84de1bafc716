package cache_test

import (
	"testing"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/testing/looptest"
)

func TestMain(m *testing.M) {
	compiler.Main()
	looptest.Main(m)
}
