package run_test

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkSleep is the baseline for BenchmarkSlip: how late a thread that does nothing else
// wakes up 2000 times a second. %-steal is the time that the hypervisor gave to others meanwhile.
func BenchmarkSleep(b *testing.B) {
	const n, apart = 2000, 500 * time.Microsecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		stolen := steal(b)
		late := make([]int64, 0, n)
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			b.Fatal(err)
		}
		start := now.Nano()
		for i := range int64(n) {
			at := unix.NsecToTimespec(start + (i+1)*int64(apart))
			for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil) == unix.EINTR {
			}
			if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
				b.Fatal(err)
			}
			late = append(late, now.Nano()-at.Nano())
		}
		slices.Sort(late)
		b.ReportMetric(float64(late[n/2])/1e3, "µs-p50")
		b.ReportMetric(float64(late[n*99/100])/1e3, "µs-p99")
		b.ReportMetric(float64(late[n-1])/1e3, "µs-max")
		// The unit of /proc/stat is a hundredth of a second, of all processors.
		b.ReportMetric(float64(steal(b)-stolen)/(n*apart.Seconds())/float64(runtime.NumCPU()), "%-steal")
	}
}

func steal(b *testing.B) (n int64) {
	b.Helper()
	f, err := os.Open("/proc/stat")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	var x int64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &x, &x, &x, &x, &x, &x, &x, &n); err != nil {
		b.Fatal(err)
	}
	return n
}
