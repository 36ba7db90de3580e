package main

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/rpcrdma/toolkit/capture"
)

// Progress is shown for inputs that take a while.
const (
	progressFrom  = 64 << 20 // bytes
	progressAfter = 500 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

// showProgress shows how much of the input has been read, until the returned function is called.
func showProgress(w io.Writer, in *input) func() {
	p, ok := in.Reader.(capture.Progresser)
	if !ok {
		return func() {}
	}
	if _, total := p.Progress(); total < progressFrom {
		return func() {}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-time.After(progressAfter):
		case <-stop:
			return
		}
		_, total := p.Progress()
		bar := progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionShowBytes(true),
			progressbar.OptionFullWidth(),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(progressEvery))
		t := time.NewTicker(progressEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				done, _ := p.Progress()
				_ = bar.Set64(min(done, total))
			case <-stop:
				_ = bar.Finish()
				return
			}
		}
	})
	return func() {
		close(stop)
		wg.Wait()
	}
}
