package testworld

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Browser is a headless Chromium that opens pages from files. One goroutine at a time.
type Browser struct {
	// Dark makes pages prefer a dark color scheme.
	Dark bool
	// Width and Height are the size of the window, in CSS pixels.
	Width, Height int

	t       testing.TB
	program string
}

// NewBrowser returns a browser with a light window of 1280 by 2400 pixels. It skips or fails the test if there is none.
func NewBrowser(t testing.TB) *Browser {
	t.Helper()
	program := os.Getenv("RANKD_CHROMIUM")
	if program == "" {
		if os.Getenv("RANKD_REQUIRE_CHROMIUM") == "1" {
			t.Fatal("RANKD_REQUIRE_CHROMIUM is set, but RANKD_CHROMIUM names no browser")
		}
		t.Skip("RANKD_CHROMIUM names no browser")
	}
	return &Browser{Width: 1280, Height: 2400, t: t, program: program}
}

// DOM opens the page in file, runs its scripts, and returns the document as they leave it.
func (b *Browser) DOM(file string) string { return b.run(file, "--dump-dom") }

// Screenshot opens the page in file and writes a picture of it, as PNG.
func (b *Browser) Screenshot(file, picture string) { b.run(file, "--screenshot="+picture) }

func (b *Browser) run(file string, job string) string {
	b.t.Helper()
	file, err := filepath.Abs(file)
	require.NoError(b.t, err)
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--hide-scrollbars", "--user-data-dir=" + b.t.TempDir(), fmt.Sprintf("--window-size=%d,%d", b.Width, b.Height),
	}
	if b.Dark {
		args = append(args, "--blink-settings=preferredColorScheme=0")
	}
	out, err := exec.CommandContext(b.t.Context(), b.program, append(args, job, "file://"+file)...).Output()
	require.NoError(b.t, err)
	return string(out)
}
