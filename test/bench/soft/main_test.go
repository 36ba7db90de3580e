package main

import "testing"

func TestResults(t *testing.T) {
	all := make(map[string][]cost)
	text := "goos: linux\nBenchmarkProvider/Read1M-2   \t 10\t  200 ns/op\t 5 MB/s\t 150.5 cpu-ns/op\t 0 B/op\n--- BENCH: BenchmarkProvider/Read1M-2\n" +
		"BenchmarkProvider/Stream1M/bare-2 \t 10\t 100 ns/op\t 9 MB/s\t 301 cpu-ns/op\nPASS\n"
	if err := benchmarks(all, "iwarp", []byte(text)); err != nil {
		t.Fatal(err)
	}
	csv := "job,fabric,bytes_per_second,client_cpu_ns_per_byte,server_cpu_ns_per_byte,error\nread,tcp,4,0.5,0.25,\n"
	if err := server(all, []byte(csv)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]cost{"iwarp/Read1M": {200, 150.5}, "iwarp/Stream1M/bare": {100, 301}, "read/tcp": {0.25, 0.75}} {
		if got := all[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, bad := range []string{"", "job,fabric\nread,tcp\n", "job,fabric,bytes_per_second,client_cpu_ns_per_byte,server_cpu_ns_per_byte,error\nread,tcp,4,,,refused\n"} {
		if err := server(all, []byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestSpread(t *testing.T) {
	if s := spread([]float64{3, 1, 2}); s != "2.00 (1.00–3.00)" {
		t.Error(s)
	}
	if s := spread([]float64{4, 1, 2, 3}); s != "2.50 (1.00–4.00)" {
		t.Error(s)
	}
}
