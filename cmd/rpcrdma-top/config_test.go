package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/internal/settings"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

// configured are options as a configuration file sets them.
func configured(t *testing.T, text string, given ...string) (*options, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "top.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &options{config: path, thresholds: monitor.DefaultThresholds, inks: make(map[tone]*string), interval: time.Second}
	err := o.configure(func(flag string) bool { return slices.Contains(given, flag) })
	return o, err
}

// example is the configuration file in the documentation.
func example(t *testing.T) string {
	b, err := os.ReadFile("../../docs/rpcrdma-top.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "```toml\n")
	text, _, ok2 := strings.Cut(text, "```\n")
	if !ok || !ok2 {
		t.Fatal("there is no example")
	}
	return text
}

// TestConfigExample reads the example of the documentation, which has all keys.
func TestConfigExample(t *testing.T) {
	text := example(t)
	o, err := configured(t, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.check(); err == nil || !strings.Contains(err.Error(), "no input") {
		t.Error(err)
	}
	d, err := settings.Parse("example", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range keys() {
		if _, ok := d.Values[s.key]; !ok && !strings.HasPrefix(s.key, "columns.") && !strings.HasPrefix(s.key, "sort.") {
			t.Errorf("the example lacks %s", s.key)
		}
	}
	if o.interval != 2*time.Second || o.thresholds[monitor.AlarmP99] != 0.1 || len(o.layout[transactions].columns) == 0 || !o.bell || len(o.inks) != len(toneNames) {
		t.Errorf("%+v", o)
	}
}

// TestConfigCounts lets flags count more than the file.
func TestConfigCounts(t *testing.T) {
	const text = "interval = 5\nfilter = 'op == READ'\nmouse = false\n[alarm]\np99 = '1s'\nagain = 0.5\n"
	o, err := configured(t, text)
	if err != nil || o.interval != 5*time.Second || o.filter != "op == READ" || !o.noMouse || o.thresholds[monitor.AlarmP99] != 1 || o.thresholds[monitor.AlarmAgain] != 0.5 {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = configured(t, text, "interval", "filter", "no-mouse")
	if err != nil || o.interval != time.Second || o.filter != "" || o.noMouse {
		t.Errorf("%+v, %v", o, err)
	}
	if err := thresholds(&o.thresholds, []string{"p99=2s"}); err != nil || o.thresholds[monitor.AlarmP99] != 2 || o.thresholds[monitor.AlarmAgain] != 0.5 {
		t.Errorf("%+v, %v", o.thresholds, err)
	}
}

// TestConfigMistakes wants the line of each, and what was meant.
func TestConfigMistakes(t *testing.T) {
	for text, want := range map[string][]string{
		"intervall = 1":                                {":1: ", `no key "intervall"`, "did you mean interval?"},
		"\n\n[alarms]\np99 = 1":                        {":4: ", `no key "alarms.p99"`, "did you mean alarm.p99?"},
		"[alarm]\npp = 1\n":                            {":2: ", `no key "alarm.pp"`},
		"p99 = 1":                                      {":1: ", "did you mean alarm.p99?"},
		"[colors]\n# x\nwarm = 'red'":                  {":3: ", "did you mean colors.warn?"},
		"[colors]\nwarn = 'rde'":                       {":2: ", "did you mean red?"},
		"interval = true":                              {":1: interval: "},
		"interval = 'soon'":                            {":1: interval: not a time"},
		"interval = 2026-01-01":                        {":1: interval: "},
		"bell = 'yes'":                                 {":1: bell: neither true nor false"},
		"theme = 'drak'":                               {":1: theme: ", "did you mean dark?"},
		"filter = 'op =='":                             {":1: filter: "},
		"filter = 1":                                   {":1: filter: "},
		"[columns]\ntransactions = 'age'":              {":2: columns.transactions: not a list"},
		"[columns]\ntransactions = ['age', 1]":         {":2: ", "not a list"},
		"[columns]\ntransactions = ['agee']":           {":2: ", "did you mean age?"},
		"columns = 1":                                  {":1: "},
		"[sort]\nfiles = 1":                            {":2: sort.files: "},
		"alarm = {p99 = 'x'}":                          {":1: alarm.p99: "},
		"keep = 'much'":                                {":1: keep: "},
		"interval = 1\ninterval = 2":                   {":2:"},
		"interval = [":                                 {":1:"},
		"interval = 'x\ny'":                            {":1:"},
		"theme = 'x'\nbell = 1\n":                      {":1: theme", ":2: bell"},
		"\x00":                                         {":1:"},
		"[[columns]]\nfiles = ['file']":                {`no key "columns"`},
		strings.Repeat("# much\n", settings.Most/7+10): {"too long"},
		strings.Repeat("[a.a.a.a.a.a.a]\nb=1\n", 1):    {`no key "a.a.a`},
	} {
		_, err := configured(t, text)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%.60q: %v; want %q", text, err, w)
			}
		}
	}
	for _, text := range []string{"", "# nothing", "[alarm]\n", "columns = {}"} {
		if _, err := configured(t, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestConfigPath(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	for dir, want := range map[string]string{"/x": "/x/rpcrdma/top.toml", "": "/home/someone/.config/rpcrdma/top.toml", "relative": "/home/someone/.config/rpcrdma/top.toml"} {
		t.Setenv("XDG_CONFIG_HOME", dir)
		if got := settings.Path(configName); got != want {
			t.Errorf("%q: %s, want %s", dir, got, want)
		}
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	o := &options{}
	if err := o.configure(nil); err != nil || o.configFile == nil {
		t.Errorf("no file: %v", err)
	}
	o = &options{config: settings.None}
	if err := o.configure(nil); err != nil || o.configFile != nil {
		t.Errorf("none: %v", err)
	}
	o = &options{config: "/nonexistent/x.toml"}
	if err := o.configure(nil); err == nil {
		t.Error("a file that was named need not exist")
	}
}

// TestConfigKeep changes what it has to, and nothing else.
func TestConfigKeep(t *testing.T) {
	for before, want := range map[string]string{
		"":                            "[columns]\nfiles = [\"file\", \"time\"]\n\n[sort]\nfiles = \"-time\"\n",
		"# mine\ninterval = 2 # slow": "# mine\ninterval = 2 # slow\n\n[columns]\nfiles = [\"file\", \"time\"]\n\n[sort]\nfiles = \"-time\"\n",
		"[sort]\nfiles = 'file' # x\nclients='time'":                         "[sort]\nfiles = \"-time\" # x\nclients='time'\n\n[columns]\nfiles = [\"file\", \"time\"]\n",
		"columns.files = ['file',\n# why\n'bytes'] # y\nsort.files = ''\"\"": "", // malformed
		"columns.files = ['file',\n# why\n'bytes'] # y\n":                    "columns.files = [\"file\", \"time\"] # y\n\n[sort]\nfiles = \"-time\"\n",
		"[columns]": "[columns]\nfiles = [\"file\", \"time\"]\n\n[sort]\nfiles = \"-time\"\n",
		"[columns] # c\r\nclients = ['client']\r\n[sort]\r\n": "[columns] # c\r\nfiles = [\"file\", \"time\"]\nclients = ['client']\r\n[sort]\r\nfiles = \"-time\"\n",
		"columns = {files = ['file']}":                        "", // cannot be changed
	} {
		path := filepath.Join(t.TempDir(), "top.toml")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &config{path: path, files: &outfile.Files{}}
		err := c.keep("files", []string{"file", "time"}, "-time")
		got, _ := os.ReadFile(path)
		switch {
		case want == "" && (err == nil || string(got) != before):
			t.Errorf("%q: %q, %v", before, got, err)
		case want != "" && (err != nil || string(got) != want):
			t.Errorf("%q: %q, %v; want %q", before, got, err, want)
		}
		if err != nil {
			continue
		}
		// Once more, and back again.
		if err := c.keep("files", []string{"file", "time"}, "-time"); err != nil {
			t.Errorf("%q again: %v", before, err)
		}
		if again, _ := os.ReadFile(path); string(again) != string(got) {
			t.Errorf("%q: %q, then %q", before, got, again)
		}
		if err := c.keep("files", nil, ""); err != nil {
			t.Errorf("%q: %v", before, err)
		}
		back, err := settings.Read(path, true)
		if err != nil {
			t.Fatal(err)
		}
		for k := range back.Values {
			if strings.HasSuffix(k, ".files") {
				t.Errorf("%q: %s is left", before, k)
			}
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	// An input is not overwritten, whatever it is called.
	path := filepath.Join(t.TempDir(), "top.toml")
	c := &config{path: path, files: &outfile.Files{}}
	c.files.Reads(path)
	if err := c.keep("files", []string{"file"}, ""); err == nil {
		t.Error("the configuration file is an input and was written")
	}
}

// FuzzConfig changes files that were read: what was not to be changed is as it was.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{"", "interval = 2", "[columns]\nfiles = ['file']\n", "columns.files=[]\n[sort]\nfiles='x'", "a=1\n[b]\nc=[1,\n2]#\n", "[columns]\r\n", "\"columns\".files = 1", "[columns.files]\nx=1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := settings.Parse("x", text)
		if err != nil {
			return
		}
		_ = apply(d, "x", &options{inks: make(map[tone]*string)}, func(string) bool { return false })
		n, err := d.Change("columns", "files", `["file"]`)
		if err != nil {
			return // the caller gives up
		}
		for k, v := range d.Values {
			if k != "columns.files" && !reflect.DeepEqual(n.Values[k], v) && !settings.Empty(v) && !strings.HasPrefix(k, "columns") {
				t.Errorf("%q: %s is %v, was %v: %q", text, k, n.Values[k], v, n.Text)
			}
		}
	})
}
