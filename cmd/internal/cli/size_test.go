package cli

import "testing"

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64 // -1: refused
	}{
		{"0", 0}, {"65536", 65536}, {"64K", 64 << 10}, {"64k", 64 << 10}, {"4M", 4 << 20}, {"4MiB", 4 << 20}, {"4MB", 4_000_000}, {"4kB", 4000}, {"1.5GB", 1_500_000_000}, {"40B", 40}, {"4Ki", 4096}, {"1.5G", 3 << 29}, {"2T", 2 << 40},
		{"4611686018427387904", 1 << 62}, {"9007199254740993", 1<<53 + 1},
		{"", -1}, {"K", -1}, {"-1", -1}, {"-1.5K", -1}, {"1KM", -1}, {"1GT", -1}, {"1 K", -1}, {"4611686018427387905", -1}, {"5000000T", -1},
		{"NaN", -1}, {"Inf", -1}, {"1e30", -1}, {"0x10", -1}, {"1Q", -1}, {"1KiBiB", -1},
	} {
		n, err := ParseSize(c.in)
		if err != nil {
			n = -1
		}
		if n != c.want {
			t.Errorf("%q: %d, want %d", c.in, n, c.want)
		}
	}
	if n, err := ParseRate("2.5G"); n != 2_500_000_000 || err != nil {
		t.Errorf("2.5G: %d, %v", n, err)
	}
	if _, err := ParseRate("fast"); err == nil {
		t.Error("fast is taken for a rate")
	}
	var s Size
	for _, bad := range []string{"0", "0K", "2T", "x", "", "4X", "9999999999G", "-4K"} {
		if s.Set(bad) == nil {
			t.Errorf("%q is taken for a size: %d", bad, s)
		}
	}
	if err := s.Set("1T"); err != nil || s != 1<<40 {
		t.Errorf("1T: %d, %v", s, err)
	}
}
