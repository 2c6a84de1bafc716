package looptest

import (
	"fmt"
	"testing"

	"github.com/rankd/rankd/loop"
)

// BenchmarkPost measures a post and its run, with the producers and the loop on different goroutines. open returns a running loop.
func BenchmarkPost(b *testing.B, open func(b *testing.B) *loop.Loop) {
	for _, producers := range []int{1, 4} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			l := open(b)
			ran := 0
			done := make(chan struct{})
			fn := func() {
				if ran++; ran == b.N {
					close(done)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for p := range producers {
				n := b.N / producers
				if p == 0 {
					n += b.N % producers
				}
				go func() {
					for range n {
						l.Post(fn)
					}
				}()
			}
			<-done
		})
	}
}
