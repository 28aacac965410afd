// CommonJS, as TypeScript sees it.
import slide = require("redis-slide");
export const key: string = slide.apiKey("secret");
