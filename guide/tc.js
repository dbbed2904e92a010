// Colours for blocks of the language, which highlight.js does not know.
(function () {
  "use strict";
  const types = "bool int8 int16 int32 int int64 uint8 byte uint16 uint32 uint64 half float16 bfloat16 float float32 double float64";
  const functions = "abs min max clamp sqrt rsqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc tgamma lgamma sigmoid floor ceil trunc round rint pow hypot fmod copysign fma fmin fmax bitand bitor bitxor bitnot shl shr isnan isinf isfinite relu gelu gelu_tanh silu softplus select concat";

  hljs.registerLanguage("tc", function (hljs) {
    return {
      keywords: { keyword: "def fn scan from scatter where in const", literal: "true false INFINITY NAN M_PI M_E", type: types, built_in: functions },
      contains: [
        hljs.HASH_COMMENT_MODE,
        hljs.C_NUMBER_MODE,
        { className: "operator", begin: /(\+|\*|(arg)?(min|max))=!?/ },
      ],
    };
  });
  document.querySelectorAll("code.language-tc").forEach(function (block) {
    const text = block.textContent;
    block.innerHTML = hljs.highlight("tc", text, true).value;
  });
})();
