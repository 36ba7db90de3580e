package work

import "testing"

func TestAllow(t *testing.T) {
	for _, x := range []struct {
		allow []string
		url   string
		ok    bool
	}{
		{nil, "s3://caps/a/b.pcap", true},
		{nil, "gs://caps/a", true},
		{nil, "s3://caps/a?region=eu", true},
		{nil, "s3://caps/a?endpoint=http://evil", false},
		{nil, "file:///etc/shadow", false},
		{nil, "/etc/shadow", false},
		{nil, "mem://x", false},
		{nil, "", false},
		{nil, "s3://u:p@caps/a", false},
		{nil, "s3://caps/%2e%2e/x", false},
		{[]string{"s3://caps/a"}, "s3://caps/a/b.pcap", true},
		{[]string{"s3://caps/a/"}, "s3://caps/a", true},
		{[]string{"s3://caps/a"}, "s3://caps/ab.pcap", false},
		{[]string{"s3://caps/a"}, "s3://other/a/b", false},
		{[]string{"s3://caps"}, "s3://caps/x", true},
		{[]string{"s3://caps?endpoint=http://me"}, "s3://caps/x?endpoint=http://me&use_path_style=true", true},
		{[]string{"s3://caps?endpoint=http://me"}, "s3://caps/x?endpoint=http://evil", false},
		{[]string{"s3://caps?endpoint=http://me"}, "s3://caps/x", false},
		{[]string{"s3://caps"}, "s3://caps/x?endpoint=http://evil", false},
		{[]string{"file:///data/in", "file:///data/out"}, "file:///data/out/jobs", true},
		{[]string{"file:///data/in"}, "file:///data/in/../../etc/shadow", false},
		{[]string{"file:///data/in"}, "file:///data/inner", false},
		{[]string{"file:///"}, "file:///etc/x", true},
	} {
		a, err := NewAllow(x.allow)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Check(x.url); (err == nil) != x.ok {
			t.Errorf("%q, %q: %v, want %v", x.allow, x.url, err, x.ok)
		}
	}
	for _, bad := range []string{"/data", "s3://a/../b", "", "s3://u:p@x"} {
		if _, err := NewAllow([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
