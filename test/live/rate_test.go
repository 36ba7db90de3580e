//go:build live && linux

package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Each second, so many packets have to be taken without a drop, in less than half a processor.
const (
	rate        = 100_000
	ratePackets = 5 * rate
)

// attempt is what came of sending packets at a rate.
type attempt struct {
	sent    int
	took    time.Duration
	waited  time.Duration // of the program, for a processor that others had
	cpu     time.Duration
	dropped bool
}

func (a *attempt) String() string {
	s := a.took.Seconds()
	return fmt.Sprintf("%d packets in %v (%.0f/s), %.1f %% of a processor, dropped: %v; the program waited %v for others",
		a.sent, a.took.Round(time.Millisecond), float64(a.sent)/s, 100*a.cpu.Seconds()/s, a.dropped, a.waited.Round(time.Millisecond))
}

// lag is how much the sender may be behind. What it has missed, it sends at once: that is another rate.
const lag = 50 * time.Millisecond

// paced sends packets at the rate, until it falls behind. slow says that it did.
func paced(send func([]byte), list [][]byte) (n int, took time.Duration, slow bool) {
	begin := time.Now()
	for n = range ratePackets {
		d := time.Duration(n)*time.Second/rate - time.Since(begin)
		if d > 200*time.Microsecond {
			time.Sleep(d)
		}
		if d < -lag {
			return n, time.Since(begin), true
		}
		send(list[n%len(list)])
	}
	return ratePackets, time.Since(begin), false
}

// rated has a program take packets at the rate. What it does on a machine that has other work to do says nothing of the
// program: only an attempt in which it got a processor, and the sender too, counts. The best of them does. That somebody
// has other work is not always seen, since a host may take processors away without a word: only a program that fails
// nearly each time has failed. If hardly any attempt counts, that is said, and what run itself has checked is all that
// was tested.
func rated(t *testing.T, run func(t *testing.T) (a attempt, slow bool)) {
	t.Helper()
	const tries, most = 8, 6
	var calm []*attempt
	for range tries {
		a, slow := run(t)
		t.Log(&a)
		if !slow && !a.dropped && a.cpu <= a.took/2 {
			return
		}
		if !slow && a.waited <= a.took/4 { // on an idle machine it is a tenth
			calm = append(calm, &a)
		}
	}
	if len(calm) >= most {
		t.Errorf("dropped, or more than half a processor, %d times of %d although nobody else had work to do: %v", len(calm), tries, calm)
		return
	}
	fmt.Fprintf(os.Stderr, "\n*** %s: %d PACKETS A SECOND WERE NOT TESTED: this machine has other work to do ***\n\n", t.Name(), rate)
}

// waiting is how long the threads of a process have waited for a processor until now.
func waiting(pid int) (sum time.Duration) {
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if f := strings.Fields(string(b)); len(f) == 3 {
			ns, _ := strconv.ParseInt(f[1], 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}
