package monitor

import (
	"fmt"
	"testing"
)

// TestUsageTime: the time of all files includes files that have been forgotten. Without them, each of the others would seem to take a larger share.
func TestUsageTime(t *testing.T) {
	var u usages
	const n = 3 * maxUsage
	for i := range n {
		name := fmt.Appendf(nil, "file %d", i)
		u.add(name, len(name), nil, false, 1, 0, 5, int64(i))
		if i%1000 == 0 {
			u.roll()
		}
	}
	list, _ := u.list(listedUsage)
	if u.time != 5*n || len(list) >= n || u.lost == 0 {
		t.Errorf("%d ns of %d files, %d listed, %d forgotten", u.time, n, len(list), u.lost)
	}
}
