package security

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// The files and what Java makes of them: testdata/java/Golden.java wrote the golden ones.
func TestPropertiesAndJAASAsJavaReadsThem(t *testing.T) {
	files, err := filepath.Glob("testdata/jaas/*.properties")
	require.NoError(t, err)
	require.Len(t, files, 13)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			want, err := os.ReadFile(strings.TrimSuffix(file, ".properties") + ".golden")
			require.NoError(t, err)
			require.Equal(t, string(want), asJava(data))
		})
	}
}

// asJava writes what we make of a file in the form of Golden.java.
func asJava(data []byte) string {
	all, wrong := parseProperties(data)
	if len(wrong) > 0 {
		return "refused\n"
	}
	values := map[string]string{}
	for _, p := range all {
		values[p.key] = p.value
	}
	var b strings.Builder
	for _, key := range sortedOptions(values) {
		fmt.Fprintf(&b, "%s = %s\n", javaQuote(key), javaQuote(values[key]))
	}
	line, ok := values["sasl.jaas.config"]
	if !ok {
		return b.String()
	}
	login, err := parseJAAS(line)
	if err != nil {
		return b.String() + "jaas refused\n"
	}
	fmt.Fprintf(&b, "module %s\n", login.module)
	for _, key := range sortedOptions(login.options) {
		fmt.Fprintf(&b, "option %s = %s\n", javaQuote(key), javaQuote(login.options[key]))
	}
	return b.String()
}

func javaQuote(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		if u < ' ' || u > '~' || u == '"' || u == '\\' {
			fmt.Fprintf(&b, `\u%04x`, u)
			continue
		}
		b.WriteRune(rune(u))
	}
	return `"` + b.String() + `"`
}

// Where we are stricter than Java, or kinder.
func TestJAASBesideJava(t *testing.T) {
	for _, row := range []struct{ name, line, password, problem string }{
		{"a bare number, which Java refuses", `m required password=1234;`, "1234", ""},
		{"an option twice: Java takes the last", `m required password=a password=b;`, "", "the option password is given twice"},
		{"two modules: Kafka refuses them later", `m required password=a; n required;`, "", "one login module is possible"},
		{"a comment that does not end", `m required /* password=a;`, "", "a comment is not closed"},
		{"nothing", ` `, "", "the class of a login module is missing"},
		{"a quote too few: what follows is not shown", `m required username="alice password="canary;`, "", "needs a value"},
		{"a line's end inside of quotes", "m required password=\"a\nb\";", "", "a quote is not closed"},
		{"a backslash at the end", `m required password="a\`, "", "a quote is not closed"},
		{"punctuation for a name", `m required +=a;`, "", `option="value" is needed`},
	} {
		t.Run(row.name, func(t *testing.T) {
			login, err := parseJAAS(row.line)
			if row.problem == "" {
				require.NoError(t, err)
				require.Equal(t, row.password, login.options["password"])
				return
			}
			require.ErrorContains(t, err, row.problem)
			require.NotContains(t, err.Error(), "canary")
		})
	}
}

func TestPropertiesInUTF8AreRefused(t *testing.T) {
	_, wrong := parseProperties([]byte("a=1\n# ä is fine here\nsasl.jaas.config=pässword\n"))
	require.Equal(t, []propertyError{{3, errUTF8.Error()}}, wrong)
}

func TestJavaNamesAreSortedAndHoldOurs(t *testing.T) {
	require.True(t, slices.IsSorted(javaNames))
	require.Greater(t, len(javaNames), 100)
	for _, name := range (&javaFile{}).known()[:len(javaKeys)+len(javaSpecial)] {
		require.Contains(t, append(javaNames, "config.providers"), name, "a name that Kafka does not have")
	}
}

func FuzzProperties(f *testing.F) {
	files, err := filepath.Glob("testdata/jaas/*.properties")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _ := parseProperties(data)
		for _, p := range all {
			if p.line < 1 || p.line > 1+strings.Count(string(data), "\n")+strings.Count(string(data), "\r") {
				t.Fatalf("line %d", p.line)
			}
			_, _ = parseJAAS(p.value)
		}
	})
}
