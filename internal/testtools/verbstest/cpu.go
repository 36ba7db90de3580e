package verbstest

import "testing"

// CPU begins to measure the processor time of this process, in which both ends run. What it returns reports the time of
// an operation as cpu-ns/op. Where the system does not tell, nothing is reported.
//
// Load elsewhere on the machine changes it less than the wall time.
func CPU(b *testing.B) (report func()) {
	b.Helper()
	start, ok := spent()
	return func() {
		if end, _ := spent(); ok {
			b.ReportMetric(float64((end-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
		}
	}
}
