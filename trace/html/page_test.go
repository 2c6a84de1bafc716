package html

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/browser"
	"github.com/rankd/rankd/trace/tracetest"
)

func TestShots(t *testing.T) {
	for _, n := range []int{5, 50, 500} {
		var out bytes.Buffer
		require.NoError(t, Write(&out, Named{Trace: tracetest.Random(3, n)}))
		file := filepath.Join("/tmp/shots", fmt.Sprintf("r%d.html", n))
		require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
		b := browser.New(t)
		b.Height = map[int]int{5: 700, 50: 1500, 500: 5200}[n]
		b.Screenshot(file, fmt.Sprintf("/tmp/shots/r%d.png", n))
	}
}
